// Hermes
// SPDX-License-Identifier: Apache-2.0

import AsyncHTTPClient
package import Foundation
import HermesCore
import HermesWire
package import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// Posts to push services and to the receiver of webhooks over HTTP/1.1, with persistent connections and without
/// redirects. Only APNs needs HTTP/2; ``http2`` is for APNs. Thread-safe; ends with ``shutdown()``.
///
/// State: a `Mutex` around the clients of hosts whose address was checked; nothing is called under it.
package final class PushHTTPClient: Sendable {
    /// An answer with the beginning of its body.
    package struct Answer: Sendable {
        package let status: Int
        /// The headers, with their names in lower case.
        package let headers: [String: String]
        package let body: Data
    }

    /// The number of bytes of a body after which the rest is not read.
    static let maxBodyBytes = 256 * 1024

    /// A host and the address to connect to. The host's name is not resolved again, and the certificate must be valid
    /// for this name.
    package struct Route: Sendable, Hashable {
        package let host: String
        package let address: String

        package init(host: String, address: String) {
            self.host = host
            self.address = address
        }
    }

    struct Pinned {
        let client: HTTPClient
        var requests = 0
        var lastUsed: UInt64 = 0
    }

    struct Routes {
        var clients: [Route: Pinned] = [:]
        var clock: UInt64 = 0
        var isClosed = false
    }

    private struct Closed: Error, CustomStringConvertible {
        var description: String { "the server is stopping" }
    }

    /// The largest number of routes that keep their connections while nothing is sent to them.
    private static let maxIdleRoutes = 64

    /// The largest number of connections to a host of the operator's configuration. It equals the largest number of
    /// requests at once, so that no request waits for a connection. Such a wait would count as a slow answer of the
    /// service, and would end in a failure after 10 s. FCM gets up to 400 requests at once
    /// (``PushHandOff/Settings``), and a relay for Web Push up to 1,024.
    static let mostConnections = 1_024
    /// The largest number of connections over one route. It equals the largest number of requests at once to a host
    /// that clients name.
    static let mostConnectionsPerRoute = 256
    /// The largest size of a file with certificate authorities, in bytes.
    private static let maxAuthorityBytes = 4 << 20

    private let client: HTTPClient
    /// The client for HTTP/2. It ends with this client, and has the same authorities and the same time limit.
    let http2: HTTP2Client
    private let configuration: HTTPClient.Configuration
    private let group: any EventLoopGroup
    private let timeout: TimeAmount
    let routes = Mutex(Routes())

    /// Creates the client.
    ///
    /// - Parameters:
    ///   - authority: a PEM file with certificate authorities to trust instead of the system's.
    ///   - timeout: the longest time for one request and its answer, including the time to connect.
    /// - Throws: an error if the file is unusable.
    package init(group: any EventLoopGroup, authority: String? = nil, timeout: Duration = .seconds(20)) throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authority {
            let pem = try BoundedFile.read(authority, maxBytes: Self.maxAuthorityBytes)
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(pem)))
        } else if let roots = Self.systemRoots {
            tls.trustRoots = .certificates(roots)
        }
        let milliseconds = Int64(timeout / .milliseconds(1))
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls,
            redirectConfiguration: .disallow,
            timeout: .init(connect: .milliseconds(min(10_000, milliseconds)), read: .milliseconds(milliseconds))
        )
        configuration.httpVersion = .http1Only
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.mostConnections
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHandler(AnswerLimitHandler(), position: .first)
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(AnswerStatusHandler(), position: .after(decoder))
            }
        }
        // Failing at once is better than queueing, because the caller retries later.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
        self.configuration = configuration
        self.group = group
        self.timeout = .milliseconds(milliseconds)
        http2 = try HTTP2Client(group: group, tls: tls, timeout: self.timeout)
    }

    /// The system's authorities, read once for the clients of all routes; nil if the TLS library finds them itself.
    private static let systemRoots: [NIOSSLCertificate]? = {
        #if os(Linux)
        let files = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]
        return files.lazy.compactMap { try? NIOSSLCertificate.fromPEMFile($0) }.first { !$0.isEmpty }
        #else
        return nil
        #endif
    }()

    /// Closes all connections.
    package func shutdown() async {
        let pinned = routes.withLock { routes in
            routes.isClosed = true
            defer { routes.clients = [:] }
            return routes.clients.values.map(\.client)
        }
        http2.shutdown()
        // All clients end at the same time, because each may have to wait for the other side.
        await withDiscardingTaskGroup { group in
            for client in pinned + [client] { group.addTask { try? await client.shutdown() } }
        }
    }

    /// Returns the route's client, and creates it if necessary. Each route has a client of its own, because the library
    /// can set the address of a name only for a whole client.
    private func takeClient(for route: Route) throws -> HTTPClient {
        try routes.withLock { routes in
            guard !routes.isClosed else { throw Closed() }
            var pinned =
                routes.clients[route]
                ?? {
                    var configuration = configuration
                    configuration.dnsOverride = [route.host: route.address]
                    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
                        Self.mostConnectionsPerRoute
                    return Pinned(
                        client: HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
                    )
                }()
            pinned.requests += 1
            routes.clock += 1
            pinned.lastUsed = routes.clock
            routes.clients[route] = pinned
            return pinned.client
        }
    }

    private func releaseClient(for route: Route) {
        let surplus: HTTPClient? = routes.withLock { routes in
            routes.clients[route]?.requests -= 1
            guard routes.clients.count > Self.maxIdleRoutes else { return nil }
            let idle = routes.clients.filter { $0.value.requests == 0 }
            guard let oldest = idle.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else { return nil }
            routes.clients[oldest.key] = nil
            return oldest.value.client
        }
        guard let surplus else { return }
        // The task is unstructured, so that nobody else waits for the other side, which may take some seconds.
        Task { try? await surplus.shutdown() }
    }

    /// Posts one body.
    ///
    /// - Parameter route: the host and the address to connect to. The host must be the URL's host in lower case. If
    ///   the route is nil, the URL's host is resolved.
    /// - Throws: any failure to get an answer: no connection, no trust, no answer in time.
    package func post(
        _ url: String,
        over route: Route? = nil,
        headers: [(String, String)],
        body: Data
    ) async throws -> Answer {
        guard let route else { return try await post(url, headers, body, client) }
        let client = try takeClient(for: route)
        let result: Result<Answer, any Error>
        do { result = .success(try await post(url, headers, body, client)) } catch { result = .failure(error) }
        releaseClient(for: route)
        return try result.get()
    }

    private func post(
        _ url: String,
        _ headers: [(String, String)],
        _ body: Data,
        _ client: HTTPClient
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers = HTTPHeaders(headers)
        request.body = .bytes(ByteBuffer(bytes: body))
        let end = ContinuousClock.now + .nanoseconds(timeout.nanoseconds)
        let response = try await client.execute(request, deadline: .now() + timeout)
        let status = Int(response.status.code)
        let body = await Self.read(response.body, until: end)
        // After a status of success, the request was accepted, even if the answer's body could not be read.
        if let failure = body.failure, !(200..<300).contains(status) { throw failure }
        var found: [String: String] = [:]
        for header in response.headers { found[header.name.lowercased()] = header.value }
        return Answer(status: status, headers: found, body: Data(buffer: body.bytes))
    }

    private struct Body: Sendable {
        var bytes = ByteBuffer()
        var failure: (any Error)?
    }

    /// Reads a body until `end`, and ignores bytes that arrive later. The library's deadline covers only the head of
    /// an answer.
    private static func read(_ body: HTTPClientResponse.Body, until end: ContinuousClock.Instant) async -> Body {
        await withTaskGroup(of: Body?.self) { group in
            group.addTask {
                var read = Body()
                do {
                    for try await part in body {
                        read.bytes.writeImmutableBuffer(part)
                        guard read.bytes.readableBytes < maxBodyBytes else { return read }
                    }
                    if Task.isCancelled { read.failure = HTTPClientError.deadlineExceeded }
                } catch {
                    read.failure = Task.isCancelled ? HTTPClientError.deadlineExceeded : error
                }
                return read
            }
            group.addTask {
                // The sleep throws when it is no longer needed.
                try? await Task.sleep(until: end, clock: .continuous)
                return nil
            }
            var read = Body()
            for await result in group {
                group.cancelAll()
                if let result { read = result }
            }
            return read
        }
    }
}

extension PushHTTPClient.Answer {
    /// The wait in `Retry-After` (RFC 9110, section 10.2.3), at most a day: a number of seconds, or the time until a
    /// date.
    package var retryAfter: Duration? { retryAfter(at: Date()) }

    /// - Parameter now: the present time.
    func retryAfter(at now: Date) -> Duration? {
        guard let text = headers["retry-after"] else { return nil }
        let untilDate = Self.time(text).map { max(0, $0 - Int(now.timeIntervalSince1970)) }
        guard let seconds = Int(text) ?? untilDate, seconds >= 0 else { return nil }
        return .seconds(min(seconds, 86_400))
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the time in an IMF-fixdate (RFC 9110, section 5.6.7), such as `Sun, 06 Nov 1994 08:49:37 GMT`, in
    /// seconds since 1970; nil if the text is not such a date. Does not check the day of the week.
    private static func time(_ text: String) -> Int? {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0].utf8.count == 4, parts[0].hasSuffix(","), parts[5] == "GMT",
            let day = number(parts[1], digits: 2), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])),
            let year = number(parts[3], digits: 4)
        else { return nil }
        let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false)
        guard clock.count == 3,
            let hour = number(clock[0], digits: 2), hour < 24,
            let minute = number(clock[1], digits: 2), minute < 60,
            let second = number(clock[2], digits: 2), second <= 60
        else { return nil }
        let days = CivilDate.daysSince1970(year: year, month: month + 1, day: day)
        return ((days * 24 + hour) * 60 + minute) * 60 + second
    }

    private static func number(_ text: Substring, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }

    /// The beginning of the body, for logs.
    package var excerpt: String {
        String(decoding: body.prefix(200), as: UTF8.self).filter { !$0.isNewline }
    }
}
