// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import NIOCore
import NIOPosix
import NIOSSL

/// The client of a ``LineGateway``. Only one task at a time may use it.
final class LineClient {
    let channel: any Channel
    private var arrivals: AsyncStream<ByteBuffer>.AsyncIterator
    private var bytes = ByteBuffer()

    private init(channel: any Channel, arrivals: AsyncStream<ByteBuffer>) {
        self.channel = channel
        self.arrivals = arrivals.makeAsyncIterator()
    }

    /// - Parameters:
    ///   - first: the bytes that are written before all others, even before TLS.
    ///   - tls: the configuration of TLS; nil for an unencrypted connection.
    static func connect(
        to listener: Listener,
        unixSocketPath: String? = nil,
        first: [UInt8] = [],
        tls: TLSConfiguration? = nil
    ) async throws -> LineClient {
        let context = try tls.map { try NIOSSLContext(configuration: $0) }
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Arrivals(continuation))
                }
            }
        let channel: any Channel
        if let unixSocketPath {
            channel = try await bootstrap.connect(unixDomainSocketPath: unixSocketPath).get()
        } else {
            channel = try await bootstrap.connect(host: "127.0.0.1", port: listener.port).get()
        }
        if !first.isEmpty { try await channel.writeAndFlush(ByteBuffer(bytes: first)) }
        if let context {
            try await channel.eventLoop.submit {
                let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                try channel.pipeline.syncOperations.addHandler(handler, position: .first)
            }.get()
        }
        return LineClient(channel: channel, arrivals: stream)
    }

    func send(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)) }

    func send(bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// Returns the next line; nil after the connection is closed.
    func next() async -> String? {
        while true {
            if let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                let line = bytes.readString(length: end - bytes.readerIndex)
                bytes.moveReaderIndex(forwardBy: 1)
                return line
            }
            guard var more = await arrivals.next(isolation: #isolation) else { return nil }
            bytes.writeBuffer(&more)
        }
    }

    private final class Arrivals: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let continuation: AsyncStream<ByteBuffer>.Continuation

        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
