// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix

/// The least of an HTTP client.
enum HTTPProbe {
    struct NoAnswer: Error {}

    static func get(_ path: String, port: Int) async throws -> (status: Int, text: String) {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let answer = try await channel.executeThenClose { inbound, outbound in
            let request = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            try await outbound.write(ByteBuffer(string: request))
            var answer = ByteBuffer()
            for try await bytes in inbound { answer.writeImmutableBuffer(bytes) }
            return String(buffer: answer)
        }
        let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1)
        guard let head = parts.first, let status = Int(head.split(separator: " ").dropFirst().first ?? "") else {
            throw NoAnswer()
        }
        return (status, parts.count > 1 ? String(parts[1]) : "")
    }
}
