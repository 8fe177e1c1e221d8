// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import NIOSSL

/// A minimal HTTP client.
enum HTTPProbe {
    struct NoAnswer: Error {}

    /// The answer.
    struct Answer: Sendable {
        let status: Int
        /// The header fields, with names in lower case.
        let headers: [String: String]
        let text: String
    }

    /// - Parameter trusting: the path of the certificate that the server must present; nil for a connection without
    ///   TLS.
    static func get(_ path: String, port: Int, trusting: String? = nil) async throws -> (status: Int, text: String) {
        let answer = try await send("GET", path, port: port, trusting: trusting)
        return (answer.status, answer.text)
    }

    private static func client(trusting path: String) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(path))
        return try NIOSSLContext(configuration: configuration)
    }

    static func send(
        _ method: String,
        _ path: String,
        headers: [(String, String)] = [],
        body: String? = nil,
        port: Int,
        trusting: String? = nil,
        host: String = "localhost",
        from address: String? = nil
    ) async throws -> Answer {
        let tls = try trusting.map(client(trusting:))
        var bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        if let address { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: address, port: 0)) }
        let channel =
            try await bootstrap
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let handler = try NIOSSLClientHandler(context: tls, serverHostname: "localhost")
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let answer = try await channel.executeThenClose { inbound, outbound in
            var request = "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n"
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
