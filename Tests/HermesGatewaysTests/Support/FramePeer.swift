// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOPosix

/// The other end of a connection, frame by frame. For one task at a time.
final class FramePeer<Decoder: FrameDecoder> {
    let channel: any Channel
    private var arrivals: AsyncStream<ByteBuffer>.AsyncIterator
    private var bytes = ByteBuffer()
    private var decoder: Decoder

    private init(channel: any Channel, arrivals: AsyncStream<ByteBuffer>) {
        self.channel = channel
        self.arrivals = arrivals.makeAsyncIterator()
        decoder = Decoder(maxFrameBytes: 1 << 20)
    }

    /// - Parameter receiveBuffer: how much the operating system takes for a peer that does not read, in bytes.
    static func connect(
        to port: Int,
        group: any EventLoopGroup,
        receiveBuffer: Int32 = 131_072
    ) async throws -> FramePeer {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let channel = try await ClientBootstrap(group: group)
            .channelOption(.socketOption(.so_rcvbuf), value: .init(receiveBuffer))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .get()
        return FramePeer(channel: channel, arrivals: stream)
    }

    func send(_ frames: Decoder.Frame...) async throws {
        var bytes = ByteBuffer()
        for frame in frames { try frame.write(into: &bytes) }
        try await channel.writeAndFlush(bytes).get()
    }

    func send(bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// The next frame; nil once the connection is closed.
    func next() async throws -> Decoder.Frame? {
        while true {
            if let frame = try decoder.next(from: &bytes) { return frame }
            guard var more = await arrivals.next(isolation: #isolation) else { return nil }
            bytes.discardReadBytes()
            bytes.writeBuffer(&more)
        }
    }

    func close() async throws { try await channel.close().get() }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let continuation: AsyncStream<ByteBuffer>.Continuation

        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
