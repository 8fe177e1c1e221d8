// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// An HTTP/1.1 server in this process that records requests and returns the answers that a test chooses.
///
/// State: a `Mutex` in ``Inbox``. The test's answer is requested outside the lock.
package final class FakeEndpoint: Sendable {
    /// A received request.
    package struct Request: Sendable {
        package let path: String
        /// The headers, with names in lower case.
        package let headers: [String: String]
        package let body: [UInt8]
    }

    package struct Answer: Sendable {
        package var status: Int
        package var headers: [String: String]
        package var body: String
        /// Whether a further byte follows the body every 50 ms, until the client closes the connection.
        package var isEndless = false

        package init(_ status: Int = 200, headers: [String: String] = [:], body: String = "") {
            self.status = status
            self.headers = headers
            self.body = body
        }
    }

    private struct State {
        var requests: [Request] = []
        var waiting: [(count: Int, continuation: CheckedContinuation<[Request], Never>)] = []
    }

    private let channel: any Channel
    private let inbox: Inbox

    /// The requests of all connections.
    private final class Inbox: Sendable {
        let state = Mutex(State())
        let answer: @Sendable (Request, Int) -> Answer

        init(_ answer: @escaping @Sendable (Request, Int) -> Answer) { self.answer = answer }

        func take(_ request: Request) -> Answer {
            let (count, ready) = state.withLock { state in
                state.requests.append(request)
                let requests = state.requests
                let ready = state.waiting.filter { $0.count <= requests.count }
                state.waiting.removeAll { $0.count <= requests.count }
                return (requests.count, ready.map { ($0.continuation, requests) })
            }
            for (continuation, requests) in ready { continuation.resume(returning: requests) }
            return answer(request, count)
        }
    }

    private init(channel: any Channel, inbox: Inbox) {
        self.channel = channel
        url = "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"
        self.inbox = inbox
    }

    /// Opens a port.
    ///
    /// - Parameter answer: returns the answer to a request. It also gets the request's number; the first is 1.
    package static func start(
        answer: @escaping @Sendable (Request, Int) -> Answer = { _, _ in Answer() }
    ) async throws -> FakeEndpoint {
        let inbox = Inbox(answer)
        let channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(inbox))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return FakeEndpoint(channel: channel, inbox: inbox)
    }

    /// The endpoint's URL, for example `http://127.0.0.1:4711`.
    package let url: String

    /// The requests so far.
    package var received: [Request] { inbox.state.withLock { $0.requests } }

    /// Waits until at least this number of requests has arrived, and returns all of them.
    package func requests(_ count: Int) async -> [Request] {
        await withCheckedContinuation { continuation in
            let present = inbox.state.withLock { state -> [Request]? in
                if state.requests.count >= count { return state.requests }
                state.waiting.append((count, continuation))
                return nil
            }
            if let present { continuation.resume(returning: present) }
        }
    }

    /// Closes the port.
    package func stop() async { try? await channel.close() }

    /// Assembles requests and answers them. It is used on the connection's event loop only.
    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let inbox: Inbox
        private var head: HTTPRequestHead?
        private var body: [UInt8] = []

        init(_ inbox: Inbox) { self.inbox = inbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                self.head = head
                body = []
            case .body(let part):
                body += Array(part.readableBytesView)
            case .end:
                guard let head else { return }
                var headers: [String: String] = [:]
                for header in head.headers { headers[header.name.lowercased()] = header.value }
                let answer = inbox.take(Request(path: head.uri, headers: headers, body: body))
                var fields = HTTPHeaders(answer.headers.map { ($0.key, $0.value) })
                let isEndless = answer.isEndless
                fields.add(
                    name: isEndless ? "transfer-encoding" : "content-length",
                    value: isEndless ? "chunked" : String(answer.body.utf8.count)
                )
                let response = HTTPResponseHead(
                    version: .http1_1,
                    status: HTTPResponseStatus(statusCode: answer.status),
                    headers: fields
                )
                context.write(wrapOutboundOut(.head(response)), promise: nil)
                context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil)
                if isEndless { drip(context) } else { context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil) }
            }
        }

        private func drip(_ context: ChannelHandlerContext) {
            guard context.channel.isActive else { return }
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "x")))), promise: nil)
            context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(50)) { self.drip(context) }
        }
    }
}
