// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// A minimal HTTP client: one request, one answer, one connection.
struct HTTPEndpoint {
    /// The answer of the server.
    struct Answer: Sendable {
        let status: Int
        let body: [UInt8]
    }

    /// The longest accepted body of an answer, in bytes.
    private static let maxAnswerBytes = 4 << 20

    private let host: String
    private let port: Int
    private let isTLS: Bool
    private let path: String
    private let checksCertificate: Bool

    /// - Parameter checksCertificate: whether the certificate must be valid for the host.
    /// - Throws: ClientFailure if the address is invalid. The message gives an example of a valid address.
    init(_ server: String, path: String, checksCertificate: Bool = true) throws(ClientFailure) {
        guard let url = URL(string: server), let host = url.host, !host.isEmpty,
            let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https"
        else {
            throw ClientFailure(
                "--server \(server): not an HTTP address such as http://127.0.0.1:8080",
                exitCode: .validationFailure
            )
        }
        self.host = host
        isTLS = scheme == "https"
        port = url.port ?? (isTLS ? 443 : 80)
        self.path = path
        self.checksCertificate = checksCertificate
    }

    /// Sends a request, and waits at most 30 seconds for the answer.
    func post(_ body: [UInt8], headers: [(String, String)]) async throws(ClientFailure) -> Answer {
        try await answer(.POST, body, headers)
    }

    /// Sends a request without a body, and waits for the answer.
    ///
    /// - Parameter limit: the longest wait.
    func get(within limit: Duration = .seconds(30)) async throws(ClientFailure) -> Answer {
        try await answer(.GET, [], [], within: limit)
    }

    private func answer(
        _ method: HTTPMethod,
        _ body: [UInt8],
        _ headers: [(String, String)],
        within limit: Duration = .seconds(30)
    ) async throws(ClientFailure) -> Answer {
        do {
            return try await withThrowingTaskGroup(of: Answer.self) { group in
                defer { group.cancelAll() }
                group.addTask { try await exchange(method, body, headers) }
                group.addTask {
                    try await Task.sleep(for: limit)
                    throw ClientFailure("\(host):\(port) does not answer; check --server", exitCode: ExitCode(69))
                }
                guard let answer = try await group.next() else { throw ClientFailure("no answer") }
                return answer
            }
        } catch let failure as ClientFailure {
            throw failure
        } catch {
            // The reason may already begin with the host.
            let reason = explain(error)
            let place = reason.hasPrefix(host) ? "" : "\(host):\(port): "
            throw ClientFailure(
                "cannot connect: \(place)\(reason); is the server running (hermes serve), and --server right?",
                exitCode: ExitCode(69)
            )
        }
    }

    private func exchange(
        _ method: HTTPMethod,
        _ body: [UInt8],
        _ headers: [(String, String)]
    ) async throws -> Answer {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !checksCertificate { configuration.certificateVerification = .none }
        let tls = isTLS ? try NIOSSLContext(configuration: configuration) : nil
        let host = host
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connectTimeout(.seconds(10))
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let name = (try? SocketAddress(ipAddress: host, port: 0)) == nil ? host : nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: name)
                        )
                    }
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
                        wrappingChannelSynchronously: channel
                    )
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var head = HTTPRequestHead(version: .http1_1, method: method, uri: path)
            head.headers.add(name: "Host", value: "\(host):\(port)")
            head.headers.add(name: "Content-Length", value: String(body.count))
            head.headers.add(name: "Connection", value: "close")
            for (name, value) in headers { head.headers.add(name: name, value: value) }
            try await outbound.write(.head(head))
            try await outbound.write(.body(.byteBuffer(ByteBuffer(bytes: body))))
            try await outbound.write(.end(nil))
            var status = 0
            var bytes: [UInt8] = []
            for try await part in inbound {
                switch part {
                case .head(let head): status = Int(head.status.code)
                case .body(let buffer):
                    guard bytes.count + buffer.readableBytes <= Self.maxAnswerBytes else {
                        throw ClientFailure("the answer is too long")
                    }
                    bytes.append(contentsOf: buffer.readableBytesView)
                case .end: return Answer(status: status, body: bytes)
                }
            }
            throw ClientFailure("the server closed the connection without an answer", exitCode: ExitCode(69))
        }
    }
}
