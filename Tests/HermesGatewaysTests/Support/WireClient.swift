// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOPosix
import NIOSSL

/// A client that sends and receives single frames.
final class WireClient<Decoder: FrameDecoder>: Sendable {
    let channel: any Channel
    private let frames: AsyncThrowingStream<Decoder.Frame, any Error>

    private init(channel: any Channel, frames: AsyncThrowingStream<Decoder.Frame, any Error>) {
        self.channel = channel
        self.frames = frames
    }

    /// - Parameter authority: the PEM file with the only trusted certificate; nil for an unencrypted connection.
    static func connect(port: Int, authority: String? = nil) async throws -> WireClient {
        guard let authority else { return try await connect(port: port, tls: nil) }
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(authority)
        return try await connect(port: port, tls: configuration)
    }

    /// - Parameters:
    ///   - tls: the configuration of TLS; nil for an unencrypted connection.
    ///   - receiveBuffer: the size of the operating system's receive buffer, in bytes; nil for the system's default.
    static func connect(
        port: Int,
        tls configuration: TLSConfiguration?,
        receiveBuffer: Int32? = nil
    ) async throws -> WireClient {
        let tls = try configuration.map { try NIOSSLContext(configuration: $0) }
        let (frames, continuation) = AsyncThrowingStream.makeStream(of: Decoder.Frame.self)
        var bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let handler = try NIOSSLClientHandler(context: tls, serverHostname: "localhost")
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector<Decoder>(continuation))
                }
            }
        if let receiveBuffer {
            bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: .init(receiveBuffer))
        }
        let channel = try await bootstrap.connect(host: "127.0.0.1", port: port).get()
        return WireClient(channel: channel, frames: frames)
    }

    /// Sends bytes, which need not be whole frames.
    func send(_ bytes: ByteBuffer) async throws { try await channel.writeAndFlush(bytes) }

    func send(bytes: [UInt8]) async throws { try await send(ByteBuffer(bytes: bytes)) }

    func send(_ frames: Decoder.Frame...) async throws {
        var bytes = ByteBuffer()
        for frame in frames { try frame.write(into: &bytes) }
        try await send(bytes)
    }

    /// Returns the next frame; nil after the server has closed the connection.
    ///
    /// - Throws: if the received bytes are not a frame.
    func next() async throws -> Decoder.Frame? {
        for try await frame in frames { return frame }
        return nil
    }

    /// Closes this side, and returns when the server has closed its side. For later packets on other connections, this
    /// connection has ended.
    func close() async throws {
        // The server may have closed the connection in the meantime.
        try? await channel.close(mode: .output).get()
        try await channel.closeFuture.get()
    }
}

/// Cuts the received bytes into frames.
private final class Collector<Decoder: FrameDecoder>: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let continuation: AsyncThrowingStream<Decoder.Frame, any Error>.Continuation
    private var decoder = Decoder(maxFrameBytes: 2 << 20)
    private var unread = ByteBuffer()

    init(_ continuation: AsyncThrowingStream<Decoder.Frame, any Error>.Continuation) {
        self.continuation = continuation
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        unread.discardReadBytes()
        unread.writeBuffer(&bytes)
        do {
            while let frame = try decoder.next(from: &unread) { continuation.yield(frame) }
        } catch {
            continuation.finish(throwing: error)
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// The error of a test that cannot continue, because the server sent something unexpected or closed the connection.
struct Unexpected: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
