// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix

/// The least of an HTTP client.
enum HTTPProbe {
    struct NoAnswer: Error {}

    /// What came back.
    struct Answer: Sendable {
        let status: Int
        /// With names in lower case.
        let headers: [String: String]
        let text: String
    }

    static func get(_ path: String, port: Int) async throws -> (status: Int, text: String) {
        let answer = try await send("GET", path, port: port)
        return (answer.status, answer.text)
    }

    static func send(
        _ method: String,
        _ path: String,
        headers: [(String, String)] = [],
        body: String? = nil,
        port: Int
    ) async throws -> Answer {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let answer = try await channel.executeThenClose { inbound, outbound in
            var request = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            for (name, value) in headers { request += "\(name): \(value)\r\n" }
            if let body { request += "Content-Length: \(body.utf8.count)\r\n" }
            try await outbound.write(ByteBuffer(string: request + "\r\n" + (body ?? "")))
            var answer = ByteBuffer()
            for try await bytes in inbound { answer.writeImmutableBuffer(bytes) }
            return String(buffer: answer)
        }
        let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1)
        let lines = parts.first?.split(separator: "\r\n") ?? []
        guard let head = lines.first, let status = Int(head.split(separator: " ").dropFirst().first ?? "") else {
            throw NoAnswer()
        }
        let fields = lines.dropFirst().map { line in
            let field = line.split(separator: ":", maxSplits: 1)
            return (field[0].lowercased(), field.count > 1 ? String(field[1].drop { $0 == " " }) : "")
        }
        return Answer(
            status: status,
            headers: Dictionary(fields) { first, _ in first },
            text: parts.count > 1 ? String(parts[1]) : ""
        )
    }
}
