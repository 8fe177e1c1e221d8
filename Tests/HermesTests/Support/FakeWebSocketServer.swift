// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A server on a free loopback port. It receives the request for a WebSocket, and then a test's script writes bytes.
final class FakeWebSocketServer: Sendable {
    /// Answers the request of a connection (the first is 1).
    typealias Script = @Sendable (_ number: Int, _ channel: any Channel, _ accept: String) -> Void

    let port: Int
    private let listener: any Channel
    private let state: NIOLockedValueBox<[any Channel]>

    /// - Parameters:
    ///   - script: answers the request.
    ///   - received: is called with the number of bytes after the request.
    init(
        _ script: @escaping Script,
        received: @escaping @Sendable (_ number: Int, _ channel: any Channel, _ bytes: Int) -> Void = { _, _, _ in }
    ) async throws {
        let state = NIOLockedValueBox<[any Channel]>([])
        self.state = state
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = state.withLockedValue { state in
                        state.append(channel)
                        return state.count
                    }
                    try channel.pipeline.syncOperations.addHandler(RequestHandler(number, script, received))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
    }

    var connectionCount: Int { state.withLockedValue { $0.count } }

    func stop() async throws {
        try await listener.close()
        for channel in state.withLockedValue({ $0 }) { try? await channel.close() }
    }

    /// The answer that opens a WebSocket.
    static func answer(_ accept: String, subprotocol: String = "mqtt") -> ByteBuffer {
        let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(accept)\r\n"
        let head = "HTTP/1.1 101 Switching Protocols\r\n" + fields
        return ByteBuffer(string: head + "Sec-WebSocket-Protocol: \(subprotocol)\r\n\r\n")
    }

    private final class RequestHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let number: Int
        private let script: Script
        private let received: @Sendable (Int, any Channel, Int) -> Void
        private var request = ""
        private var bytes = 0

        init(
            _ number: Int,
            _ script: @escaping Script,
            _ received: @escaping @Sendable (Int, any Channel, Int) -> Void
        ) {
            self.number = number
            self.script = script
            self.received = received
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let data = unwrapInboundIn(data)
            guard !request.hasSuffix("\r\n\r\n") else {
                bytes += data.readableBytes
                return received(number, context.channel, bytes)
            }
            request += String(buffer: data)
            guard request.hasSuffix("\r\n\r\n") else { return }
            let key = request.split(separator: "\r\n").compactMap { line -> String? in
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2, parts[0].lowercased() == "sec-websocket-key" else { return nil }
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
            let text = (key.first ?? "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            script(number, context.channel, Data(sha1(Array(text.utf8))).base64EncodedString())
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// SHA-1 (FIPS 180-4, section 6.1). Only the handshake needs it.
private func sha1(_ message: [UInt8]) -> [UInt8] {
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    let bitCount = UInt64(message.count * 8)
    var bytes = message + [0x80]
    while bytes.count % 64 != 56 { bytes.append(0) }
    bytes += (0..<8).map { UInt8(truncatingIfNeeded: bitCount >> (56 - 8 * UInt64($0))) }
    func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
    for block in stride(from: 0, to: bytes.count, by: 64) {
        var words = (0..<16).map { index in
            (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[block + 4 * index + $1]) }
        }
        for index in 16..<80 {
            words.append(rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (f, k): (UInt32, UInt32) =
                switch index {
                case ..<20: (b & c | ~b & d, 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotated(a, 5) &+ f &+ e &+ k &+ words[index]
            (e, d, c, b, a) = (d, c, rotated(b, 30), a, next)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
    }
    return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
}
