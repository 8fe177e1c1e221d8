// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import HermesPush

@Suite("HTTP/1.1 to push services")
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

    /// The status that the client gets from a server that answers with these bytes; nil: no answer.
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
}
