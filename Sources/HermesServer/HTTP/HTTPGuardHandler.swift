// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore
import NIOHTTP1

/// The handler that follows the parser of the HTTP port. It enforces the deadlines and sizes of a connection
/// (``HTTPExchange``), answers invalid and refused requests, and ends the connection. It does all this on the event
/// loop, so that it works however busy the rest of the server is.
///
/// NIO's upgrade handler loses the head of a request that asks for an upgrade and gets none. So a request that cannot
/// become a WebSocket is passed on without its field `Upgrade`.
///
/// State: confined to the channel's event loop.
final class HTTPGuardHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The time for a refused peer to read the answer.
    private static let farewell = TimeAmount.milliseconds(500)

    private let gate: HTTPGate
    private let peer: HTTPPeer
    /// The rate of this connection if its client is hidden; nil before its first request.
    private var bucket: TokenBucket?
    private var exchange: HTTPExchange
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var timerDue = Duration.zero
    /// The last word, while it waits for the answers before it.
    private var lastWord: HTTPExchange.LastWord?
    private var hasSaidLastWord = false
    private var hasSeenHead = false
    /// The requests that are not answered yet.
    private var passed: [PassedRequest] = []
    /// Whether the connection becomes a WebSocket. If so, the following bytes are not HTTP.
    private var isHandedOver = false
    /// Whether the answer that is being sent is an endless stream.
    private var isStreaming = false

    init(gate: HTTPGate, peer: HTTPPeer) {
        self.gate = gate
        self.peer = peer
        exchange = HTTPExchange(limits: gate.limits, now: gate.uptime())
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        schedule()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        for request in passed { gate.ended(request) }
        passed = []
        context.fireChannelInactive()
    }

    /// Called by ``HTTPArrivalHandler``.
    fileprivate func bytesArrived() {
        exchange.bytesArrived(now: gate.uptime())
        schedule()
    }

    // MARK: Inbound

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After the head of a WebSocket's handshake, data may be of any type.
        if isHandedOver { return context.fireChannelRead(data) }
        guard exchange.isReading else { return }
        do throws(HTTPExchange.LastWord) {
            switch unwrapInboundIn(data) {
            case .head(let head): try take(head, context)
            case .body(let bytes):
                try exchange.bodyReceived(bytes.readableBytes)
                context.fireChannelRead(data)
            case .end:
                exchange.endReceived(now: gate.uptime())
                context.fireChannelRead(data)
            }
        } catch {
            end(with: error, context)
        }
    }

    private func take(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) throws(HTTPExchange.LastWord) {
        let now = gate.uptime()
        try exchange.headReceived(head, now: now)
        let isWebSocket = !hasSeenHead && gate.isWebSocket(head)
        hasSeenHead = true
        passed.append(try gate.begin(head, from: peer, isWebSocket: isWebSocket, bucket: &bucket, now: now))
        schedule()
        isHandedOver = isWebSocket
        tellToContinue(context)
        guard !isWebSocket, head.headers.contains(name: "upgrade") else {
            return context.fireChannelRead(wrapInboundOut(.head(head)))
        }
        var plain = head
        plain.headers.remove(name: "upgrade")
        context.fireChannelRead(wrapInboundOut(.head(plain)))
    }

    private func tellToContinue(_ context: ChannelHandlerContext) {
        guard exchange.tellsToContinue(now: gate.uptime()) else { return }
        let word = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(word)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as HTTPParserError:
            if exchange.isReading, !isHandedOver { end(with: HTTPExchange.lastWord(on: error), context) }
        // Data arrived after a complete request.
        case is ByteToMessageDecoderError: break
        // After a reset or a failed handshake, nothing more can be sent.
        default:
            if let reason = TLSProblem.ofHandshake(error) { gate.handshakeFailed(reason, from: peer.client) }
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if isHandedOver { return context.fireUserInboundEventTriggered(event) }
        if event is ChannelShouldQuiesceEvent {
            if exchange.stop() { context.close(promise: nil) }
            return
        }
        // If the reader of a stream closes its side, it has gone. Nothing else would show this before the next event.
        if case .inputClosed? = event as? ChannelEvent, exchange.owed == 0 || isStreaming, !hasSaidLastWord {
            return context.close(promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Outbound

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !hasSaidLastWord else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head):
            if head.status.code >= 200 {
                exchange.answerBegan()
                isStreaming = head.headers.first(name: "content-type") == HTTPContext.eventStream
                if isStreaming { context.channel.abandonPeer(after: gate.limits.answer) }
                if exchange.endsAfterAnswers, exchange.owed == 1, lastWord == nil {
                    head.headers.replaceOrAdd(name: "connection", value: "close")
                }
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            // A stream has no time limit while the peer reads it.
            if context.channel.isWritable { exchange.answerMoved(now: gate.uptime()) }
            context.write(data, promise: promise)
        case .end:
            isStreaming = false
            if !passed.isEmpty { gate.ended(passed.removeFirst()) }
            let isLast = exchange.answered(now: gate.uptime())
            context.write(data, promise: promise)
            if let lastWord, exchange.owed == 0 {
                say(lastWord, context)
            } else if isLast {
                context.flush()
                leave(context)
            } else {
                schedule()
                tellToContinue(context)
            }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        exchange.answerMoved(now: gate.uptime())
        context.fireChannelWritabilityChanged()
    }

    // MARK: The end

    private func end(with word: HTTPExchange.LastWord, _ context: ChannelHandlerContext) {
        guard !hasSaidLastWord, lastWord == nil else { return }
        gate.metrics.refused(word.status)
        switch exchange.ended(now: gate.uptime()) {
        case .now: say(word, context)
        case .afterAnswers:
            lastWord = word
            schedule()
        case .nothing: context.close(promise: nil)
        }
    }

    private func say(_ word: HTTPExchange.LastWord, _ context: ChannelHandlerContext) {
        let body = ByteBuffer(string: word.text)
        var head = HTTPResponseHead(version: .http1_1, status: word.status)
        head.headers = [
            "content-type": "text/plain; charset=utf-8", "content-length": String(body.readableBytes),
            "connection": "close", "x-content-type-options": "nosniff", "cache-control": "no-store",
        ]
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        leave(context)
    }

    /// Closes this side, and gives the peer a moment to read the answer. If the channel were closed at once, further
    /// input would make the system discard the answer.
    private func leave(_ context: ChannelHandlerContext) {
        hasSaidLastWord = true
        timer?.cancel()
        let channel = context.channel
        context.close(mode: .output, promise: nil)
        // This task is not cancelled: it keeps the channel in memory for ``farewell`` at most.
        _ = context.eventLoop.scheduleTask(in: Self.farewell) { channel.close(promise: nil) }
    }

    // MARK: Time

    /// Schedules a timer for the exchange's deadline; an early timer does no harm.
    private func schedule() {
        guard !hasSaidLastWord, let context else { return }
        let due = exchange.deadline
        if timer != nil, timerDue <= due { return }
        timer?.cancel()
        timerDue = due
        let wait = TimeAmount(max(due - gate.uptime(), .milliseconds(1)))
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: wait) { self.deadlineReached() }
    }

    private func deadlineReached() {
        timer = nil
        guard !hasSaidLastWord, let context else { return }
        switch exchange.deadlineReached(now: gate.uptime()) {
        case .wait: schedule()
        case .close: context.close(promise: nil)
        case .say(let word): end(with: word, context)
        }
    }
}

@available(*, unavailable)
extension HTTPGuardHandler: Sendable {}

/// The handler before the parser. It reports arriving bytes, because the parser does not report the beginning of a
/// request.
///
/// State: confined to the channel's event loop.
final class HTTPArrivalHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let handler: HTTPGuardHandler

    init(telling handler: HTTPGuardHandler) { self.handler = handler }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        handler.bytesArrived()
        context.fireChannelRead(data)
    }
}

@available(*, unavailable)
extension HTTPArrivalHandler: Sendable {}

extension Channel {
    /// Closes the connection when the peer has accepted none of the waiting bytes for this time.
    ///
    /// A stream needs this, because it can be so slow that the socket's buffer holds all its data for hours. NIO's
    /// queue then stays empty and does not show that the peer reads nothing. On systems without the socket option,
    /// the stream ends when TCP's own time limit is over.
    fileprivate func abandonPeer(after time: Duration) {
        #if os(Linux)
        // TCP_USER_TIMEOUT of <netinet/tcp.h>, in milliseconds.
        let userTimeout = ChannelOptions.tcpOption(NIOBSDSocket.Option(rawValue: 18))
        _ = setOption(userTimeout, value: Int(time / .milliseconds(1)))
        #endif
    }
}
