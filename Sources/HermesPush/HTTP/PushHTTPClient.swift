// Hermes
// SPDX-License-Identifier: Apache-2.0

import AsyncHTTPClient
package import Foundation
package import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Posts to push services and to the receiver of webhooks: HTTP/2 where the other side offers it, persistent
/// connections, no redirects. Thread-safe; ends with ``shutdown()``.
package final class PushHTTPClient: Sendable {
    /// An answer with at most ``maxBodyBytes`` of its body.
    package struct Answer: Sendable {
        package let status: Int
        /// Names in lower case.
        package let headers: [String: String]
        package let body: Data
    }

    /// The longest answer; a longer one is a failure.
    private static let maxBodyBytes = 256 * 1024

    private let client: HTTPClient
    private let timeout: TimeAmount

    /// Creates the client.
    ///
    /// - Parameters:
    ///   - authority: PEM file with certificate authorities to trust in place of the system's.
    ///   - timeout: for one request and its answer, connecting included.
    /// - Throws: an error in the file.
    package init(group: any EventLoopGroup, authority: String? = nil, timeout: Duration = .seconds(20)) throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authority {
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
        }
        let milliseconds = Int64(timeout / .milliseconds(1))
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls,
            redirectConfiguration: .disallow,
            timeout: .init(connect: .milliseconds(min(10_000, milliseconds)), read: .milliseconds(milliseconds))
        )
        configuration.httpVersion = .automatic
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 16
        // Failing at once is better than queueing: the caller retries later.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
        self.timeout = .milliseconds(milliseconds)
    }

    /// Closes all connections.
    package func shutdown() async { try? await client.shutdown() }

    /// Posts one body.
    ///
    /// - Throws: any failure to get an answer: no connection, no trust, no answer in time.
    package func post(_ url: String, headers: [(String, String)], body: Data) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers = HTTPHeaders(headers)
        request.body = .bytes(ByteBuffer(bytes: body))
        let response = try await client.execute(request, deadline: .now() + timeout)
        let buffer = try await response.body.collect(upTo: Self.maxBodyBytes)
        var found: [String: String] = [:]
        for header in response.headers { found[header.name.lowercased()] = header.value }
        return Answer(status: Int(response.status.code), headers: found, body: Data(buffer: buffer))
    }
}

extension PushHTTPClient.Answer {
    /// The seconds in `Retry-After` (RFC 9110, section 10.2.3), at most a day.
    package var retryAfter: Duration? {
        guard let text = headers["retry-after"], let seconds = Int(text), seconds >= 0 else { return nil }
        return .seconds(min(seconds, 86_400))
    }

    /// The beginning of the body, for logs.
    package var excerpt: String {
        String(decoding: body.prefix(200), as: UTF8.self).filter { !$0.isNewline }
    }
}
