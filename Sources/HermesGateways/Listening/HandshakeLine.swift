// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
package import NIOCore
import NIOTLS
import Synchronization

/// The TLS handshakes of all listeners take turns, because one may cost some milliseconds of an event loop and its
/// client nothing. Each loop does one at a time and serves its other connections in between; addresses take turns.
///
/// State: a `Mutex` around the lines of the loops, taken once for each handshake.
package final class HandshakeLines: Sendable {
    private let lines = Mutex<[ObjectIdentifier: NIOLoopBound<HandshakeLine>]>([:])

    package init() {}

    /// Adds TLS to the end of a pipeline. Called on the channel's loop.
    package func add(
        _ handler: any ChannelHandler,
        to channel: any Channel,
        from address: ConnectionCounter.Address
    ) throws {
        let gate = HandshakeGate(line(of: channel.eventLoop), "\(address)")
        try channel.pipeline.syncOperations.addHandlers([gate, handler, HandshakeEnd(gate)])
    }

    private func line(of loop: any EventLoop) -> HandshakeLine {
        lines.withLock { lines in
            let line = lines[ObjectIdentifier(loop)] ?? NIOLoopBound(HandshakeLine(loop), eventLoop: loop)
            lines[ObjectIdentifier(loop)] = line
            return line
        }.value
    }
}

/// The handshakes of one loop that have something to do. Owner: the loop.
final class HandshakeLine {
    private let loop: any EventLoop
    private var waiting = TurnTable<String, Deque<HandshakeGate>>()
    private var isScheduled = false

    init(_ loop: any EventLoop) { self.loop = loop }

    fileprivate func append(_ gate: HandshakeGate) {
        waiting.update(gate.source, default: []) { $0.append(gate) }
        schedule()
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        // After a pause, so that the loop looks at its sockets.
        loop.assumeIsolated().scheduleTask(in: TurnQueue.pause) { self.takeTurn() }
    }

    private func takeTurn() {
        let next = waiting.next { gates in (gates.popFirst(), isEmpty: gates.isEmpty) }
        next?.takeTurn()
        // Behind the handshake: what was due before its end would come before the sockets.
        isScheduled = false
        if next != nil { schedule() }
    }
}

/// Stands before TLS, and holds the peer's bytes until the handshake has its turn; gone after the handshake.
private final class HandshakeGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let source: String
    private let line: HandshakeLine
    private var context: ChannelHandlerContext?
    private var held: [ByteBuffer] = []
    /// The peer has closed its side after the held bytes.
    private var heldEnd: ChannelEvent?
    /// Whether it is in the line.
    private var isWaiting = false
    /// Whether the channel is to be read again, after the turn.
    private var wantsRead = false
    private var hadTurn = false
    private var isOver = false

    init(_ line: HandshakeLine, _ source: String) {
        self.line = line
        self.source = source
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return context.fireChannelRead(data) }
        held.append(unwrapInboundIn(data))
        guard !isWaiting else { return }
        isWaiting = true
        line.append(self)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if !isWaiting { context.fireChannelReadComplete() }
    }

    func read(context: ChannelHandlerContext) {
        if isWaiting { wantsRead = true } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if isWaiting, let end = event as? ChannelEvent {
            heldEnd = end
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        // What came before may be all that the peer wanted to say; the beginning of a handshake says nothing.
        if hadTurn { pass(context) }
        context.fireChannelInactive()
    }

    func takeTurn() {
        guard let context, isWaiting, context.channel.isActive else { return }
        hadTurn = true
        pass(context)
    }

    /// Passes the held bytes on.
    private func pass(_ context: ChannelHandlerContext) {
        guard isWaiting else { return }
        isWaiting = false
        let (data, end) = (held, heldEnd)
        (held, heldEnd) = ([], nil)
        for bytes in data { context.fireChannelRead(wrapInboundOut(bytes)) }
        context.fireChannelReadComplete()
        if let end { context.fireUserInboundEventTriggered(end) }
        guard wantsRead else { return }
        wantsRead = false
        context.read()
    }

    /// The handshake is complete.
    func end() {
        isOver = true
        // Not now: what it holds is being read.
        context?.eventLoop.assumeIsolated().execute { [self] in
            if let context { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
        }
    }
}

/// Stands behind TLS, and opens the gate after the handshake.
private final class HandshakeEnd: ChannelInboundHandler, RemovableChannelHandler {
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
extension HandshakeLine: Sendable {}

@available(*, unavailable)
extension HandshakeGate: Sendable {}

@available(*, unavailable)
extension HandshakeEnd: Sendable {}
