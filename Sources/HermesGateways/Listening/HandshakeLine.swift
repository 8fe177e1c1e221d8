// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
package import NIOCore
import NIOTLS
import Synchronization

/// Lets the TLS handshakes of all listeners take turns, because a handshake may cost some milliseconds of an event
/// loop, and costs the client nothing. Each loop works on one handshake at a time, and serves its other connections in
/// between. The clients' addresses take turns.
///
/// State: a `Mutex` around the queues of the loops, taken once for each handshake.
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

/// One loop's queue of the handshakes for which bytes have arrived. Owner: the loop.
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
        // After a pause, so that the loop serves its sockets first.
        loop.assumeIsolated().scheduleTask(in: TurnQueue.pause) { self.takeTurn() }
    }

    private func takeTurn() {
        let next = waiting.next { gates in (gates.popFirst(), isEmpty: gates.isEmpty) }
        next?.takeTurn()
        // Scheduled after the handshake, because the loop runs tasks that are already due before it serves its sockets.
        isScheduled = false
        if next != nil { schedule() }
    }
}

/// The handler before TLS. It holds the peer's bytes until the handshake has its turn, and is removed after the
/// handshake.
private final class HandshakeGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let source: String
    private let line: HandshakeLine
    private var context: ChannelHandlerContext?
    private var held: [ByteBuffer] = []
    /// The event that reports that the peer closed its side after the held bytes; nil if the peer has not closed it.
    private var heldEnd: ChannelEvent?
    /// Whether the handshake is in the queue.
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
        // The held bytes may be the last ones that the peer wanted to send. If the handshake has not had a turn, they
        // are dropped, because the beginning of a handshake says nothing.
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

    /// Has this handler removed, because the handshake is complete.
    func end() {
        isOver = true
        // The handler is not removed at once, because the bytes that it held are being read now.
        context?.eventLoop.assumeIsolated().execute { [self] in
            if let context { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
        }
    }
}

/// The handler behind TLS. After the handshake, it has the gate removed, and removes itself.
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
