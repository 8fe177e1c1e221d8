// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import HermesGateways

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct STUNListenerTests {
    private final class Answers: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        let continuation: AsyncStream<ByteBuffer>.Continuation
        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            continuation.yield(unwrapInboundIn(data).data)
        }
    }

    @Test func `tells the observed address`() async throws {
        let group: any EventLoopGroup = .singletonMultiThreadedEventLoopGroup
        let listener = try await STUNListener.start(host: "127.0.0.1", port: 0, group: group)
        let (answers, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let client = try await DatagramBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answers(continuation))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        var request = ByteBuffer()
        request.writeMultipleIntegers(UInt16(1), UInt16(0), STUNMessage.magicCookie, UInt32(1), UInt64(2))
        let server = try SocketAddress(ipAddress: "127.0.0.1", port: listener.port)
        // A datagram that is not a request is not answered.
        for bytes in [ByteBuffer(string: "hello"), request] {
            try await client.writeAndFlush(AddressedEnvelope(remoteAddress: server, data: bytes))
        }
        var answer: ByteBuffer?
        for await bytes in answers {
            answer = bytes
            break
        }
        let port = answer?.getInteger(at: 26, as: UInt16.self).map { $0 ^ 0x2112 }
        #expect(port.map(Int.init) == client.localAddress?.port)
        try await client.close().get()
        await listener.stop()
    }

    @Test func `one address is answered so often`() {
        var limiter = STUNLimiter()
        var answered = 0
        for _ in 1...100 where limiter.allows(.v4(1), second: 5) { answered += 1 }
        #expect(answered == STUNLimiter.perAddress)
        let isOtherAllowed = limiter.allows(.v4(2), second: 5)
        #expect(isOtherAllowed)
        let isLaterAllowed = limiter.allows(.v4(1), second: 6)
        #expect(isLaterAllowed)
    }

    @Test func `forged addresses take bounded memory`() {
        var limiter = STUNLimiter()
        var answered = 0
        for address in 1...UInt32(STUNLimiter.addresses + 100) where limiter.allows(.v4(address), second: 1) {
            answered += 1
        }
        #expect(answered == STUNLimiter.addresses)
    }
}
