// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP/2 server over TLS that writes any frames that a test requests, even invalid ones.
final class FakeHTTP2Server: Sendable {
    /// A frame (RFC 9113, section 4.1).
    struct Frame: Sendable {
        let type: UInt8
        var flags: UInt8 = 0
        var stream: UInt32 = 0
        var payload: [UInt8] = []

        static let settings = Frame(type: 4)
        static let settingsAcknowledgement = Frame(type: 4, flags: 1)
        static let goAway = Frame(type: 7, payload: Array(repeating: 0, count: 8))

        /// HEADERS with `:status` as a literal without indexing (RFC 7541, section 6.2.2); nil leaves out the status.
        static func head(_ stream: UInt32, _ status: String?, ends: Bool = false) -> Frame {
            var value: [UInt8] = []
            if let status { value = [0x08, UInt8(status.utf8.count)] + Array(status.utf8) }
            return Frame(type: 1, flags: ends ? 5 : 4, stream: stream, payload: value)
        }

        static func data(_ stream: UInt32, _ bytes: String, ends: Bool = false) -> Frame {
            Frame(type: 0, flags: ends ? 1 : 0, stream: stream, payload: Array(bytes.utf8))
        }

        func write(into buffer: inout ByteBuffer) {
            buffer.writeBytes([UInt8(payload.count >> 16 & 0xFF), UInt8(payload.count >> 8 & 0xFF)])
            buffer.writeBytes([UInt8(payload.count & 0xFF), type, flags])
            buffer.writeInteger(stream)
            buffer.writeBytes(payload)
        }
    }

    /// The behaviour of the server.
    struct Script: Sendable {
        /// Returns the frames at the beginning of a connection, for the connection's number (from 1).
        var begin: @Sendable (Int) -> [Frame] = { _ in [.settings] }
        /// Returns the frames that answer a request, for the connection's number and the stream.
        var answer: @Sendable (Int, UInt32) -> [Frame] = { _, stream in
            [.head(stream, "200"), .data(stream, "good", ends: true)]
        }
        var protocols = ["h2"]
    }

    private let channel: any Channel
    private let opened: Counter
    private let closed: Counter
    let url: String

    private final class Counter: Sendable {
        let count = Mutex(0)

        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// The number of connections so far.
    var connections: Int { opened.count.withLock { $0 } }

    /// The number of closed connections.
    var closedConnections: Int { closed.count.withLock { $0 } }

    init(_ certificate: TestCertificate, _ script: Script) async throws {
        let (opened, closed) = (Counter(), Counter())
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificate.certificate).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: certificate.key, format: .pem))
        )
        configuration.applicationProtocols = script.protocols
        let tls = try NIOSSLContext(configuration: configuration)
        channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: tls))
                    try pipeline.addHandler(Handler(opened.next(), script))
                    channel.closeFuture.whenComplete { _ in _ = closed.next() }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.opened = opened
        self.closed = closed
        url = "https://localhost:\(channel.localAddress?.port ?? 0)"
    }

    func stop() async { try? await channel.close() }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let number: Int
        private let script: Script
        private var bytes = ByteBuffer()
        private var hasPreface = false

        init(_ number: Int, _ script: Script) { (self.number, self.script) = (number, script) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.writeImmutableBuffer(unwrapInboundIn(data))
            if !hasPreface {
                guard bytes.readSlice(length: 24) != nil else { return }
                hasPreface = true
                write(script.begin(number), context)
            }
            while bytes.readableBytes >= 9,
                let head = bytes.getBytes(at: bytes.readerIndex, length: 9)
            {
                let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                guard bytes.readableBytes >= 9 + length else { return }
                bytes.moveReaderIndex(forwardBy: 9 + length)
                let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                switch (head[3], head[4] & 1) {
                case (4, 0): if !script.begin(number).isEmpty { write([.settingsAcknowledgement], context) }
                // A DATA frame with END_STREAM ends a request.
                case (0, 1): write(script.answer(number, stream), context)
                default: break
                }
            }
        }

        private func write(_ frames: [Frame], _ context: ChannelHandlerContext) {
            var out = ByteBuffer()
            for frame in frames { frame.write(into: &out) }
            guard out.readableBytes > 0 else { return }
            context.writeAndFlush(wrapOutboundOut(out), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
