// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix

/// A minimal WebSocket client that can also send invalid bytes. Only one task at a time may use it.
final class WebSocketClient {
    struct Closed: Error {}

    let channel: any Channel
    private var arrivals: AsyncStream<ByteBuffer>.AsyncIterator
    private var bytes = ByteBuffer()

    private init(channel: any Channel, arrivals: AsyncStream<ByteBuffer>) {
        self.channel = channel
        self.arrivals = arrivals.makeAsyncIterator()
    }

    static func connect(port: Int) async throws -> WebSocketClient {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Arrivals(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .get()
        return WebSocketClient(channel: channel, arrivals: stream)
    }

    /// The request in the standard's example. `changes` replaces fields; nil removes a field.
    static func request(_ path: String = "/mqtt", _ changes: [String: String?] = [:]) -> String {
        var fields: [String: String] = [
            "Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "mqtt",
        ]
        for (name, value) in changes { fields[name] = value }
        return "GET \(path) HTTP/1.1\r\n" + fields.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
    }

    func send(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)) }

    func send(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// A masked frame, like a client's frame.
    static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let key: [UInt8] = [1, 2, 3, 4]
        let count = payload.count
        let length =
            count < 126
            ? [0x80 | UInt8(count)]
            : count < 65_536
                ? [0xFE, UInt8(count >> 8), UInt8(count & 0xFF)]
                : [0xFF] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        return [first] + length + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    private func more() async throws {
        guard var more = await arrivals.next(isolation: #isolation) else { throw Closed() }
        bytes.writeBuffer(&more)
    }

    /// Returns the head of the answer to the request: the status, and the text in lower case.
    func head() async throws -> (status: Int, text: String) {
        while true {
            let text = String(buffer: bytes)
            if let end = text.range(of: "\r\n\r\n") {
                let head = text[..<end.lowerBound]
                bytes.moveReaderIndex(forwardBy: head.utf8.count + 4)
                return (Int(head.split(separator: " ")[1]) ?? 0, head.lowercased())
            }
            try await more()
        }
    }

    /// Skips the body with the length from this head, which is in lower case.
    func skipBody(of head: String) async throws {
        let field = head.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
        guard let length = field.flatMap({ Int($0.dropFirst("content-length: ".count)) }) else { return }
        while bytes.readableBytes < length { try await more() }
        bytes.moveReaderIndex(forwardBy: length)
    }

    /// Returns all bytes until the end of the connection.
    func rest() async -> String {
        while let more = await arrivals.next(isolation: #isolation) { bytes.writeImmutableBuffer(more) }
        return String(buffer: bytes)
    }

    /// Returns the next frame.
    func next() async throws -> (first: UInt8, payload: [UInt8]) {
        while true {
            var view = bytes
            if let first: UInt8 = view.readInteger(), let short: UInt8 = view.readInteger() {
                var length: Int? = Int(short)
                if short == 126 { length = view.readInteger(as: UInt16.self).map { Int($0) } }
                if short == 127 { length = view.readInteger(as: UInt64.self).map { Int($0) } }
                if let length, let payload = view.readBytes(length: length) {
                    bytes = view
                    return (first, payload)
                }
            }
            try await more()
        }
    }

    /// Whether the connection ends without further bytes.
    func isClosed() async -> Bool {
        if bytes.readableBytes > 0 { return false }
        return await arrivals.next(isolation: #isolation) == nil
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
