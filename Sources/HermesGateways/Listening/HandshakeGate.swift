// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOTLS

/// The handler before TLS. It holds the peer's bytes until the handshake has its turn, and is removed after the
/// handshake.
final class HandshakeGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Handshake {
        /// The handshake has not had a turn.
        case new
        /// The handshake has had a turn. Further bytes of the handshake wait for another turn.
        case underWay
        case complete
    }

    /// The input that arrived while the handshake waits for its turn.
    private struct Held {
        var bytes: [ByteBuffer]
        /// The event that reports that the peer closed its side after the held bytes; nil if the peer has not closed
        /// its side.
        var end: ChannelEvent?
        /// Whether the channel must be read again after the turn.
        var wantsRead = false
    }

    let source: String
    private let line: HandshakeLine
    private var context: ChannelHandlerContext?
    private var handshake = Handshake.new
    /// The input that waits for the handshake's turn; nil if there is none.
    private var held: Held?

    init(_ line: HandshakeLine, _ source: String) {
        self.line = line
        self.source = source
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if handshake == .complete { return context.fireChannelRead(data) }
        let bytes = unwrapInboundIn(data)
        guard held == nil else {
            held?.bytes.append(bytes)
            return
        }
        held = Held(bytes: [bytes])
        line.append(self)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if held == nil { context.fireChannelReadComplete() }
    }

    func read(context: ChannelHandlerContext) {
        if held == nil { context.read() } else { held?.wantsRead = true }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if held != nil, let end = event as? ChannelEvent {
            held?.end = end
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        switch handshake {
        // The beginning of a handshake carries no data for the server, so its bytes are dropped.
        case .new: break
        // The held bytes may be the last ones that the peer wanted to send.
        case .underWay, .complete: pass(context)
        }
        context.fireChannelInactive()
    }

    func takeTurn() {
        guard let context, held != nil, context.channel.isActive else { return }
        if handshake == .new { handshake = .underWay }
        pass(context)
    }

    /// Passes the held bytes on.
    private func pass(_ context: ChannelHandlerContext) {
        guard let passed = held else { return }
        held = nil
        for bytes in passed.bytes { context.fireChannelRead(wrapInboundOut(bytes)) }
        context.fireChannelReadComplete()
        if let end = passed.end { context.fireUserInboundEventTriggered(end) }
        if passed.wantsRead { context.read() }
    }

    /// Schedules the removal of this handler, because the handshake is complete.
    func end() {
        handshake = .complete
        // The handler is not removed at once, because the bytes that it held are being read now.
        context?.eventLoop.assumeIsolated().execute { [self] in
            if let context { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
        }
    }
}

/// The handler after TLS in the pipeline. When the handshake is complete, it removes the gate and itself.
final class HandshakeEnd: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let gate: HandshakeGate

    init(_ gate: HandshakeGate) { self.gate = gate }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        context.fireUserInboundEventTriggered(event)
        guard case .handshakeCompleted? = event as? TLSUserEvent else { return }
        gate.end()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
}

@available(*, unavailable)
extension HandshakeGate: Sendable {}

@available(*, unavailable)
extension HandshakeEnd: Sendable {}
