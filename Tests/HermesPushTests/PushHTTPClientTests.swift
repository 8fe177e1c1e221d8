// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@testable import HermesCore
@testable import HermesPush

@Suite("HTTP/1.1 to push services", .inTurns, .timeLimit(.minutes(1)))
struct PushHTTPClientTests {
    /// Answers each read with the same bytes.
    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: String

        init(_ answer: String) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }

    /// Returns the status that the client gets from a server that answers with these bytes; nil if there is no valid
    /// answer.
    private func status(of answer: String) async throws -> Int? {
        let server = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try PushFixtures.client()
        let url = "http://127.0.0.1:\(server.localAddress?.port ?? 0)/"
        let status = try? await client.post(url, headers: [], body: Data()).status
        await client.shutdown()
        try await server.close()
        return status
    }

    @Test
    func `interim answers come before the answer`() async throws {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
        #expect(try await status(of: interim + "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n") == 201)
        #expect(try await status(of: "HTTP/1.1 599 x\r\nContent-Length: 0\r\n\r\n") == 599)
    }

    @Test(arguments: ["050", "000", "099", "101", "600", "999", "-05", "2000"])
    func `a status that is none fails the request, and nothing else`(code: String) async throws {
        #expect(try await status(of: "HTTP/1.1 \(code) x\r\nContent-Length: 2\r\n\r\n{}") == nil)
        let twice = "HTTP/1.1 \(code) x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        #expect(try await status(of: twice) == nil)
    }

    @Test(arguments: [false, true])
    func `no request waits until others are answered`(isNamedByClient: Bool) async throws {
        // No answer is complete before the client's timeout.
        let endpoint = try await FakeEndpoint.start { _, _ in
            var answer = FakeEndpoint.Answer()
            answer.isEndless = true
            return answer
        }
        let client = try PushFixtures.client()
        let url = isNamedByClient ? endpoint.url.replacing("127.0.0.1", with: "push.example.org") : endpoint.url
        let route = isNamedByClient ? PushHTTPClient.Route(host: "push.example.org", address: "127.0.0.1") : nil
        let (count, start) = (96, ContinuousClock.now)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask { _ = try? await client.post(url, over: route, headers: [], body: Data()) }
            }
            while endpoint.received.count < count, ContinuousClock.now - start < .seconds(8) {
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(endpoint.received.count == count)
            group.cancelAll()
        }
        await client.shutdown()
        await endpoint.stop()
    }

    private func retryAfter(_ text: String, at now: TimeInterval) -> Duration? {
        let answer = PushHTTPClient.Answer(status: 503, headers: ["retry-after": text], body: Data())
        return answer.retryAfter(at: Date(timeIntervalSince1970: now))
    }

    @Test
    func `a wait that is asked for is a number of seconds or a date, and at most a day`() {
        #expect(retryAfter("120", at: 0) == .seconds(120))
        #expect(retryAfter("1000000", at: 0) == .seconds(86_400))
        #expect(retryAfter("Sun, 06 Nov 1994 08:51:37 GMT", at: 784_111_777) == .seconds(120))
        #expect(retryAfter("Thu, 29 Feb 2024 00:00:00 GMT", at: 1_709_164_740) == .seconds(60))
        #expect(retryAfter("Thu, 01 Jan 1970 00:00:10 GMT", at: 0) == .seconds(10))
        #expect(retryAfter("Sun, 06 Nov 1994 08:49:36 GMT", at: 784_111_777) == .zero)
        #expect(retryAfter("Fri, 06 Nov 2093 08:49:37 GMT", at: 784_111_777) == .seconds(86_400))
    }

    @Test(arguments: [
        "", "soon", "-1", "Sun, 06 Nov 1994 08:51:37", "Sun, 06 Nov 1994 08:51:37 CET", "Sun, 6 Nov 1994 08:51:37 GMT",
        "Sun, 06 Abc 1994 08:51:37 GMT", "Sun, 00 Nov 1994 08:51:37 GMT", "Sun, 06 Nov 1994 24:51:37 GMT",
        "Sun, 06 Nov 1994 08:51 GMT", "Sun, 06 Nov +994 08:51:37 GMT", "Sun,  06 Nov 1994 08:51:37 GMT",
    ])
    func `what is neither asks for no wait`(text: String) { #expect(retryAfter(text, at: 784_111_777) == nil) }

    @Test
    func `there are as many connections as sends may be under way`() {
        let settings = PushHandOff.Settings()
        #expect(PushHTTPClient.mostConnections >= settings.lanes * settings.devices)
        #expect(PushHTTPClient.mostConnections >= HostShares.Limits().total)
        #expect(PushHTTPClient.mostConnectionsPerRoute >= HostShares.Limits().perHost)
    }
}
