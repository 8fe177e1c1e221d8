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

    /// What arrived while the handshake waits for its turn.
    private struct Held {
        var bytes: [ByteBuffer]
        /// The event that reports that the peer closed its side after the held bytes; nil if the peer has not closed
        /// it.
        var end: ChannelEvent?
        /// Whether the channel is to be read again, after the turn.
        var wantsRead = false
    }

    let source: String
    private let line: HandshakeLine
    private var context: ChannelHandlerContext?
    private var handshake = Handshake.new
    /// What waits in the queue for its turn; nil if nothing does.
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
        // The beginning of a handshake says nothing, so its bytes are dropped.
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

    /// Has this handler removed, because the handshake is complete.
    func end() {
        handshake = .complete
        // The handler is not removed at once, because the bytes that it held are being read now.
        context?.eventLoop.assumeIsolated().execute { [self] in
            if let context { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
        }
    }
}

/// The handler behind TLS. After the handshake, it has the gate removed, and removes itself.
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
