// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization

/// A POST request.
struct HTTP2Request: Sendable {
    let path: String
    let authority: String
    let headers: [(String, String)]
    let body: ByteBuffer

    var head: HPACKHeaders {
        var fields = HPACKHeaders([
            (":method", "POST"), (":scheme", "https"), (":authority", authority), (":path", path),
        ])
        for (name, value) in headers { fields.add(name: name.lowercased(), value: value) }
        fields.add(name: "content-length", value: String(body.readableBytes))
        return fields
    }
}

/// One connection for HTTP/2 as a client.
///
/// State: a `Mutex` around the figures that requests on other threads read; the rest is confined to the event loop.
final class HTTP2Connection: Sendable {
    struct State {
        /// Whether the server has closed the connection, or has announced that it will.
        var isLeaving = false
        /// The time at which the server last sent a part of an answer.
        var answeredAt = NIODeadline.now()
        var requests = 0
        /// The number of requests since the connection was opened.
        var begun = 0
    }

    /// The largest number of requests on one connection. Each request needs a stream, and the number of a stream has
    /// 31 bits (RFC 9113, section 5.1.1); NIOHTTP2 ends the process when the numbers are used up.
    static let maxRequests = 1_000_000
    /// The time after which a connection without requests is closed.
    private static let idleTime = TimeAmount.minutes(5)

    private let channel: any Channel
    private let streams: NIOLoopBound<HTTP2StreamMultiplexer>
    private let allowance: NIOLoopBound<AllowanceHandler>
    private let maxRequests: Int
    private let state: Mutex<State>

    private init(
        _ channel: any Channel,
        _ streams: HTTP2StreamMultiplexer,
        _ allowance: AllowanceHandler,
        maxRequests: Int
    ) {
        self.maxRequests = max(1, maxRequests)
        self.channel = channel
        self.streams = NIOLoopBound(streams, eventLoop: channel.eventLoop)
        self.allowance = NIOLoopBound(allowance, eventLoop: channel.eventLoop)
        state = Mutex(State())
    }

    /// Whether a new request may begin.
    var takesRequests: Bool { state.withLock { !$0.isLeaving } }

    /// Whether the connection has had as many requests as it may have.
    var isUsedUp: Bool { state.withLock { $0.begun >= maxRequests } }

    /// Opens a connection: TCP, TLS, and the server's SETTINGS.
    ///
    /// - Parameters:
    ///   - limit: the longest time for all of these steps.
    ///   - maxRequests: the largest number of requests on the connection.
    static func open(
        _ origin: HTTP2Client.Origin,
        tls: NIOSSLContext,
        on loop: any EventLoop,
        within limit: TimeAmount,
        maxRequests: Int
    ) async throws -> HTTP2Connection {
        let end = NIODeadline.now() + limit
        let begun = loop.makePromise(of: Void.self)
        let connection: HTTP2Connection
        do {
            connection = try await ClientBootstrap(group: loop)
                .connectTimeout(limit)
                .channelOption(.socketOption(.so_keepalive), value: 1)
                .connect(host: origin.host, port: origin.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try prepare(channel, serverName: origin.serverName, tls, begun, maxRequests)
                    }
                }
        } catch {
            begun.fail(error)
            throw error
        }
        let timer = loop.scheduleTask(deadline: end) {
            begun.fail(PushHTTPFailure.noSettings)
            connection.close()
        }
        defer { timer.cancel() }
        try await begun.futureResult.get()
        return connection
    }

    private static func prepare(
        _ channel: any Channel,
        serverName: String?,
        _ tls: NIOSSLContext,
        _ begun: EventLoopPromise<Void>,
        _ maxRequests: Int
    ) throws -> HTTP2Connection {
        let streams = HTTP2StreamMultiplexer(mode: .client, channel: channel) { stream in
            // Push was switched off in SETTINGS.
            stream.eventLoop.makeFailedFuture(PushHTTPFailure.badAnswer("a pushed stream"))
        }
        let allowance = AllowanceHandler()
        let connection = HTTP2Connection(channel, streams, allowance, maxRequests: maxRequests)
        let settings = nioDefaultSettings + [HTTP2Setting(parameter: .enablePush, value: 0)]
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: serverName))
        try pipeline.addHandler(ProtocolCheck())
        try pipeline.addHandler(allowance)
        try pipeline.addHandler(NIOHTTP2Handler(mode: .client, initialSettings: settings))
        try pipeline.addHandler(IdleStateHandler(allTimeout: idleTime))
        try pipeline.addHandler(RootHandler(connection, begun))
        try pipeline.addHandler(streams)
        return connection
    }

    /// Closes the connection at once. Requests under way fail.
    func close() {
        noteLeaving()
        channel.close(promise: nil)
    }

    /// Sends a request and waits for its answer.
    ///
    /// If the deadline passes and the server has answered nothing at all since the request, the connection accepts no
    /// further requests, and the next request opens another connection.
    ///
    /// - Throws: ``PushHTTPFailure/leaving`` if the connection accepts no further requests. In that case, nothing was
    ///   sent.
    func post(_ request: HTTP2Request, until end: NIODeadline) async throws -> PushHTTPClient.Answer {
        try state.withLock { state in
            guard !state.isLeaving else { throw PushHTTPFailure.leaving }
            state.requests += 1
            state.begun += 1
            // After the last request, the connection closes as after a GOAWAY.
            if state.begun >= maxRequests { state.isLeaving = true }
        }
        defer { ended() }
        let begin = NIODeadline.now()
        let answer = channel.eventLoop.makePromise(of: PushHTTPClient.Answer.self)
        let accepted = Accepted()
        let timer = channel.eventLoop.scheduleTask(deadline: end) { [self] in
            accepted.end(answer, PushHTTPFailure.noAnswer)
            state.withLock { if $0.answeredAt < begin { $0.isLeaving = true } }
        }
        defer { timer.cancel() }
        channel.eventLoop.execute { [self] in
            allowance.value.requestBegan()
            let stream = channel.eventLoop.makePromise(of: (any Channel).self)
            stream.futureResult.whenFailure { answer.fail($0) }
            streams.value.createStreamChannel(promise: stream) { stream in
                stream.eventLoop.makeCompletedFuture {
                    try stream.pipeline.syncOperations.addHandler(PostHandler(request, answer, accepted))
                }
            }
        }
        return try await answer.value()
    }

    private func ended() {
        let isOver = state.withLock { state in
            state.requests -= 1
            return state.isLeaving && state.requests == 0
        }
        if isOver { channel.close(promise: nil) }
    }

    private func noteAnswer() { state.withLock { $0.answeredAt = .now() } }

    private func noteLeaving() { state.withLock { $0.isLeaving = true } }

    /// Closes the connection if the server did not agree to HTTP/2.
    private final class ProtocolCheck: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted(let agreed)? = event as? TLSUserEvent, agreed != "h2" {
                context.fireErrorCaught(PushHTTPFailure.noHTTP2)
                return context.close(promise: nil)
            }
            context.fireUserInboundEventTriggered(event)
        }
    }

    /// Closes the connection if the service sends many more bytes than its answers need. The limits of one answer do
    /// not bound frames that belong to no answer, such as PING, SETTINGS, and frames of unknown types.
    private final class AllowanceHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        /// The bytes that the service may send before the first request.
        private static let first = AnswerLimitHandler.maxBytes
        /// The bytes that each request adds.
        private static let perRequest = PushHTTPClient.maxBodyBytes
        /// The largest allowance, in bytes.
        private static let most = 16 << 20

        private var left = first

        func requestBegan() { left = min(left + Self.perRequest, Self.most) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            // Bytes that were read together with the excess may still arrive here.
            guard left > 0 else { return }
            left -= unwrapInboundIn(data).readableBytes
            guard left > 0 else {
                context.fireErrorCaught(PushHTTPFailure.badAnswer("the service sends far too many bytes"))
                return context.close(promise: nil)
            }
            context.fireChannelRead(data)
        }
    }

    /// Handles the events that concern the whole connection: the first SETTINGS, GOAWAY, the end.
    private final class RootHandler: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame
        typealias InboundOut = HTTP2Frame

        private let connection: HTTP2Connection
        private let begun: EventLoopPromise<Void>

        init(_ connection: HTTP2Connection, _ begun: EventLoopPromise<Void>) {
            self.connection = connection
            self.begun = begun
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data).payload {
            case .headers, .data: connection.noteAnswer()
            case .settings(.settings): begun.succeed()
            case .goAway:
                connection.noteLeaving()
                begun.fail(PushHTTPFailure.leaving)
                context.fireChannelRead(data)
                return closeIfIdle(context)
            default: break
            }
            context.fireChannelRead(data)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is IdleStateHandler.IdleStateEvent { return closeIfIdle(context) }
            context.fireUserInboundEventTriggered(event)
        }

        private func closeIfIdle(_ context: ChannelHandlerContext) {
            guard connection.state.withLock({ $0.requests == 0 }) else { return }
            connection.noteLeaving()
            context.close(promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            begun.fail(error)
            // NIOHTTP2 also reports errors of single streams here, which the streams' handlers get, too.
            if error is NIOHTTP2Errors.StreamError { return }
            connection.noteLeaving()
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            connection.noteLeaving()
            begun.fail(PushHTTPFailure.connectionClosed)
            context.fireChannelInactive()
        }
    }
}

extension HTTP2Connection {
    /// Sends one request on its stream, and assembles the answer.
    ///
    /// The number of frames and of bytes of an answer is bounded. A status must be a number from 200 to 599, after
    /// any number of interim statuses (1xx).
    private final class PostHandler: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias OutboundOut = HTTP2Frame.FramePayload

        /// The largest number of frames of an answer. Many small frames cost much time, even if they have few bytes.
        static let maxFrames = 1_000

        private let request: HTTP2Request
        private let answer: EventLoopPromise<PushHTTPClient.Answer>
        private let accepted: Accepted
        private var frames = 0
        private var status: Int?
        private var headers: [String: String] = [:]
        private var body = ByteBuffer()

        init(
            _ request: HTTP2Request,
            _ answer: EventLoopPromise<PushHTTPClient.Answer>,
            _ accepted: Accepted
        ) {
            self.request = request
            self.answer = answer
            self.accepted = accepted
        }

        func channelActive(context: ChannelHandlerContext) {
            let channel = context.channel
            // If the answer fails elsewhere (no answer in time, cancelled), the stream is reset.
            answer.futureResult.whenComplete { _ in channel.close(promise: nil) }
            context.write(wrapOutboundOut(.headers(.init(headers: request.head))), promise: nil)
            let body = HTTP2Frame.FramePayload.Data(data: .byteBuffer(request.body), endStream: true)
            context.writeAndFlush(wrapOutboundOut(.data(body)), promise: nil)
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            frames += 1
            guard frames <= Self.maxFrames else { return fail("it has more than \(Self.maxFrames) frames") }
            switch unwrapInboundIn(data) {
            case .headers(let frame):
                if status == nil {
                    guard let status = Self.status(of: frame.headers) else { return fail("it has no valid status") }
                    if status >= 200 { begin(status, frame.headers) }
                }
                if frame.endStream { finish() }
            case .data(let frame):
                guard status != nil else { return fail("its body is before its head") }
                if case .byteBuffer(let bytes) = frame.data { body.writeImmutableBuffer(bytes) }
                if frame.endStream || body.readableBytes >= PushHTTPClient.maxBodyBytes { finish() }
            case .rstStream: accepted.end(answer, PushHTTPFailure.connectionClosed)
            default: break
            }
        }

        /// - Returns: the number of a status, which has three digits; nil if there is no valid status.
        private static func status(of headers: HPACKHeaders) -> Int? {
            guard let text = headers.first(name: ":status"), text.utf8.count == 3,
                text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let status = Int(text),
                (100..<600).contains(status)
            else { return nil }
            return status
        }

        private func begin(_ status: Int, _ fields: HPACKHeaders) {
            self.status = status
            for (name, value, _) in fields where !name.hasPrefix(":") { headers[name.lowercased()] = value }
            if status < 300 { accepted.note(.init(status: status, headers: headers, body: Data())) }
        }

        private func finish() {
            guard let status else { return fail("it ends before its head") }
            answer.succeed(.init(status: status, headers: headers, body: Data(buffer: body)))
        }

        private func fail(_ reason: String) { answer.fail(PushHTTPFailure.badAnswer(reason)) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            accepted.end(answer, error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            accepted.end(answer, PushHTTPFailure.connectionClosed)
            context.fireChannelInactive()
        }
    }

    /// The head of a successful answer. After this head has arrived, the request is known to be accepted, even if the
    /// rest of the answer does not arrive.
    private final class Accepted: Sendable {
        private let head = Mutex<PushHTTPClient.Answer?>(nil)

        func note(_ answer: PushHTTPClient.Answer) { head.withLock { $0 = answer } }

        /// Ends a request whose answer is not complete.
        func end(_ answer: EventLoopPromise<PushHTTPClient.Answer>, _ error: any Error) {
            if let head = head.withLock({ $0 }) { answer.succeed(head) } else { answer.fail(error) }
        }
    }
}

extension EventLoopPromise {
    /// Waits for the result. If the task is cancelled, the promise fails.
    func value() async throws -> Value where Value: Sendable {
        try await withTaskCancellationHandler {
            try await futureResult.get()
        } onCancel: {
            fail(CancellationError())
        }
    }
}
