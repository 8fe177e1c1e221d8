// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import NIOCore
import NIOEmbedded
import NIOTLS
import Testing

/// TLS handshakes take turns.
@Suite(.inTurns) struct HandshakeLineTests {
    private let loop = EmbeddedEventLoop()
    private let lines = HandshakeLines()

    /// Takes the place of TLS, and records what arrives.
    private final class Recorder: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var came: [String] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            came.append(String(buffer: unwrapInboundIn(data)))
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .inputClosed? = event as? ChannelEvent { came.append("closed") }
            context.fireUserInboundEventTriggered(event)
        }

        func complete(_ channel: EmbeddedChannel) throws {
            let context = try channel.pipeline.syncOperations.context(handler: self)
            context.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil))
        }
    }

    private func channel(from address: ConnectionCounter.Address = .unknown) throws -> (EmbeddedChannel, Recorder) {
        let channel = EmbeddedChannel(loop: loop)
        let recorder = Recorder()
        try lines.add(recorder, to: channel, from: address)
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/x")).wait()
        return (channel, recorder)
    }

    private func turn() { loop.advanceTime(by: .microseconds(20)) }

    @Test func `one handshake a turn`() throws {
        let all = try (0..<3).map { _ in try channel() }
        for (number, one) in all.enumerated() {
            one.0.pipeline.fireChannelRead(ByteBuffer(string: "hello \(number)"))
            one.0.pipeline.fireChannelReadComplete()
        }
        #expect(all.allSatisfy { $0.1.came.isEmpty })
        for number in 0..<3 {
            turn()
            #expect(all.map(\.1.came.count) == (0..<3).map { $0 <= number ? 1 : 0 })
        }
    }

    @Test func `the end comes behind what waits`() throws {
        let (channel, recorder) = try channel()
        channel.pipeline.fireChannelRead(ByteBuffer(string: "hello"))
        channel.pipeline.fireChannelRead(ByteBuffer(string: "more"))
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(recorder.came.isEmpty)
        turn()
        #expect(recorder.came == ["hello", "more", "closed"])
    }

    @Test func `after the handshake nothing waits`() throws {
        let (channel, recorder) = try channel()
        channel.pipeline.fireChannelRead(ByteBuffer(string: "hello"))
        turn()
        try recorder.complete(channel)
        channel.pipeline.fireChannelRead(ByteBuffer(string: "1"))
        #expect(recorder.came == ["hello", "1"])
        turn()
        channel.pipeline.fireChannelRead(ByteBuffer(string: "2"))
        #expect(recorder.came == ["hello", "1", "2"])
    }

    @Test func `who has gone takes no turn`() throws {
        let (gone, before) = try channel()
        gone.pipeline.fireChannelRead(ByteBuffer(string: "hello"))
        try gone.close().wait()
        let (channel, recorder) = try channel()
        channel.pipeline.fireChannelRead(ByteBuffer(string: "hello"))
        turn()
        turn()
        #expect(before.came.isEmpty && recorder.came == ["hello"])
    }
}
