// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL

/// A server on a free loopback port that follows a test's script.
final class FakeServer<Decoder: FrameDecoder>: Sendable {
    typealias Frame = Decoder.Frame

    /// Answers a frame of a connection (the first is 1).
    typealias Script = @Sendable (Frame, Connection) -> Void

    /// One connection, for the script.
    struct Connection: Sendable {
        let number: Int
        let channel: any Channel

        func send(_ frames: Frame...) {
            for frame in frames {
                var buffer = ByteBuffer()
                try? frame.write(into: &buffer)
                channel.writeAndFlush(buffer, promise: nil)
            }
        }

        func close() { channel.close(promise: nil) }
    }

    private struct State {
        var connections: [Connection] = []
        var count = 0
    }

    let port: Int
    /// All received frames, so that a test can wait for them.
    let received: AsyncStream<(Int, Frame)>
    private let listener: any Channel
    private let state: NIOLockedValueBox<State>

    init(
        port: Int = 0,
        tls: NIOSSLContext? = nil,
        onConnect: (@Sendable (Connection) -> Void)? = nil,
        script: @escaping Script
    ) async throws {
        let state = NIOLockedValueBox(State())
        self.state = state
        let (received, continuation) = AsyncStream<(Int, Frame)>.makeStream()
        self.received = received
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = state.withLockedValue { state in
                        state.count += 1
                        let connection = Connection(number: state.count, channel: channel)
                        state.connections.append(connection)
                        return connection
                    }
                    let handler = Handler<Decoder>(onConnect: onConnect, connection: connection) { frame in
                        script(frame, connection)
                        continuation.yield((connection.number, frame))
                    }
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    }
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        self.port = listener.localAddress?.port ?? 0
    }

    var connectionCount: Int { state.withLockedValue { $0.count } }

    /// Sends to the newest connection.
    func send(_ frame: Frame) { state.withLockedValue { $0.connections.last }?.send(frame) }

    /// Closes the newest connection.
    func closeConnection() { state.withLockedValue { $0.connections.last }?.close() }

    /// Waits for a frame.
    func first(where isWanted: (Int, Frame) -> Bool) async -> (Int, Frame)? {
        for await (number, frame) in received where isWanted(number, frame) { return (number, frame) }
        return nil
    }

    func stop() async throws {
        try await listener.close()
        for connection in state.withLockedValue({ $0.connections }) { try? await connection.channel.close() }
    }
}

private final class Handler<Decoder: FrameDecoder>: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var decoder = Decoder(maxFrameBytes: 1_048_576)
    private var buffer = ByteBuffer()
    private let onConnect: ((FakeServer<Decoder>.Connection) -> Void)?
    private let connection: FakeServer<Decoder>.Connection
    private let received: (Decoder.Frame) -> Void

    init(
        onConnect: ((FakeServer<Decoder>.Connection) -> Void)?,
        connection: FakeServer<Decoder>.Connection,
        received: @escaping (Decoder.Frame) -> Void
    ) {
        self.onConnect = onConnect
        self.connection = connection
        self.received = received
    }

    func channelActive(context: ChannelHandlerContext) { onConnect?(connection) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        buffer.writeImmutableBuffer(unwrapInboundIn(data))
        do {
            while let frame = try decoder.next(from: &buffer) { received(frame) }
        } catch {
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
