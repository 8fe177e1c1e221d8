// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Posts over HTTP/2, with one connection for each origin. The next request opens a new connection if the old one is
/// leaving (GOAWAY), is closed, or has had ``HTTP2Connection/maxRequests`` requests. It also opens a new one if the
/// server answered nothing while an earlier request timed out. A request counts as accepted as soon as the head of an
/// answer 2xx has arrived. Thread-safe; ends with ``shutdown()``.
///
/// AsyncHTTPClient is not used here: if a server sends nothing after the TLS handshake, all requests to this server
/// wait, and some answers end the process.
///
/// State: a `Mutex` around the connections; nothing is called under it.
final class HTTP2Client: Sendable {
    struct Origin: Sendable, Hashable {
        let host: String
        let port: Int

        /// The name in the TLS handshake; nil for an address.
        var serverName: String? { (try? SocketAddress(ipAddress: host, port: port)) == nil ? host : nil }

        /// The `:authority` of requests.
        var authority: String { port == 443 ? bracketed : "\(bracketed):\(port)" }

        private var bracketed: String { host.contains(":") ? "[\(host)]" : host }
    }

    private struct Entry {
        let number: UInt64
        let connection: EventLoopFuture<HTTP2Connection>
    }

    private struct State {
        var entries: [Origin: Entry] = [:]
        var lastNumber: UInt64 = 0
        var isClosed = false
    }

    private let group: any EventLoopGroup
    private let tls: NIOSSLContext
    private let timeout: TimeAmount
    private let maxRequests: Int
    private let state = Mutex(State())

    /// Creates the client.
    ///
    /// - Parameters:
    ///   - timeout: the longest time for one request and its answer, including the time to connect.
    ///   - maxRequests: the largest number of requests on one connection.
    init(
        group: any EventLoopGroup,
        tls: TLSConfiguration,
        timeout: TimeAmount,
        maxRequests: Int = HTTP2Connection.maxRequests
    ) throws {
        var tls = tls
        tls.applicationProtocols = ["h2"]
        self.group = group
        self.tls = try NIOSSLContext(configuration: tls)
        self.timeout = timeout
        self.maxRequests = maxRequests
    }

    /// Closes all connections. Requests under way fail.
    func shutdown() {
        let entries = state.withLock { state in
            state.isClosed = true
            defer { state.entries = [:] }
            return Array(state.entries.values)
        }
        for entry in entries { entry.connection.whenSuccess { $0.close() } }
    }

    /// Posts one body.
    ///
    /// - Parameter url: an `https` URL.
    /// - Throws: any failure to get an answer: no connection, no trust, no HTTP/2, no answer in time.
    func post(_ url: String, headers: [(String, String)], body: ByteBuffer) async throws -> PushHTTPClient.Answer {
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty else {
            throw PushHTTPFailure.badURL
        }
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let origin = Origin(host: name, port: parts.port ?? 443)
        let end = NIODeadline.now() + timeout
        let request = HTTP2Request(
            path: parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath,
            authority: origin.authority,
            headers: headers,
            body: body
        )
        // A connection may begin to leave between the check and the request.
        for _ in 0..<3 {
            let connection = try await connection(to: origin)
            do {
                return try await connection.post(request, until: end)
            } catch PushHTTPFailure.leaving {
                continue
            }
        }
        throw PushHTTPFailure.leaving
    }

    /// Returns the connection to an origin. If there is no connection, or if the connection accepts no new requests,
    /// opens a new connection.
    ///
    /// - Throws: ``PushHTTPFailure/leaving`` if the service ends the new connection at once.
    private func connection(to origin: Origin) async throws -> HTTP2Connection {
        var (stale, tries): (UInt64?, Int) = (nil, 2)
        while tries > 0 {
            let entry = try state.withLock { state in
                guard !state.isClosed else { throw PushHTTPFailure.closed }
                if let entry = state.entries[origin], entry.number != stale { return entry }
                state.lastNumber += 1
                let entry = Entry(number: state.lastNumber, connection: open(origin, as: state.lastNumber))
                state.entries[origin] = entry
                return entry
            }
            // A cancelled request does not end the connection for the other requests.
            let waiting = entry.connection.eventLoop.makePromise(of: HTTP2Connection.self)
            entry.connection.cascade(to: waiting)
            let connection = try await waiting.value()
            if connection.takesRequests { return connection }
            stale = entry.number
            // If other requests have used up the connection, this does not count as a failed try, because the service
            // did not cause it.
            if !connection.isUsedUp { tries -= 1 }
        }
        throw PushHTTPFailure.leaving
    }

    /// Opens a connection. If that fails, its entry is removed.
    private func open(_ origin: Origin, as number: UInt64) -> EventLoopFuture<HTTP2Connection> {
        let loop = group.any()
        // The task is unstructured, because all requests of the origin wait for it, even if one of them is cancelled.
        let opened = loop.makeFutureWithTask { [tls, timeout, maxRequests] in
            try await HTTP2Connection.open(
                origin,
                tls: tls,
                on: loop,
                within: min(timeout, .seconds(10)),
                maxRequests: maxRequests
            )
        }
        opened.whenFailure { [self] _ in
            state.withLock { state in
                if state.entries[origin]?.number == number { state.entries[origin] = nil }
            }
        }
        return opened
    }
}
