// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import Synchronization

/// The checks of all connections of the HTTP port before a request is passed on: whether the server has started, who
/// the client is, and whether it exceeds its rate.
///
/// State: a `Mutex` around the site, and one in each rate; only one is held at a time.
final class HTTPGate: Sendable {
    /// The site that is served once the server has started.
    struct Site: Sendable {
        let webSockets: [WebSocketEndpoint]
        let origins: WebOrigins
    }

    let limits: HTTPExchange.Limits
    let forwarded: ForwardedClient
    let metrics: HTTPMetrics
    let counter: ConnectionCounter
    let uptime: @Sendable () -> Duration
    /// The keys that the API accepted lately; the API keeps them up to date.
    let knownKeys = KnownKeys()
    private let health: HealthState
    /// Logs failed TLS handshakes, at most one a second.
    private let handshakes = LoginLog()
    private let logger: Logger
    private let strangers = HTTPRateLimit<ConnectionCounter.Address>(rate: 100, burst: 200)
    /// The rate of a key for requests that the API's own rate does not count. These are requests to paths without a
    /// scope or without a route, and requests with keys that were revoked after the API had accepted them. This rate is
    /// four times the API's own rate. Only a refusal by the API's own rate states when to try again.
    private let keys: HTTPRateLimit<Int>
    private let opened = Mutex<Site?>(nil)

    /// - Parameters:
    ///   - api: contains the rate of one key.
    ///   - counter: counts the connections of the listeners that share its limits.
    ///   - uptime: the time of a clock that never goes back.
    ///   - name: the port's name in the log.
    init(
        limits: HTTPExchange.Limits,
        api: APISettings,
        forwarded: ForwardedClient,
        counter: ConnectionCounter,
        health: HealthState,
        uptime: @escaping @Sendable () -> Duration,
        name: String,
        logger: Logger
    ) {
        var logger = logger
        logger[metadataKey: "gateway"] = "\(name)"
        self.logger = logger
        self.limits = limits
        keys = HTTPRateLimit(rate: 4 * api.requestsPerSecond, burst: 4 * api.burst)
        self.forwarded = forwarded
        self.counter = counter
        self.health = health
        self.uptime = uptime
        metrics = HTTPMetrics()
    }

    /// The site; nil while the server starts.
    var site: Site? { opened.withLock(\.self) }

    func open(_ site: Site) { opened.withLock { $0 = site } }

    /// Whether a request becomes a WebSocket.
    func isWebSocket(_ head: HTTPRequestHead) -> Bool {
        guard head.headers.contains(name: "upgrade"), let site else { return false }
        return WebSocketUpgrader.endpoint(for: head, of: site) != nil
    }

    /// Lets a request pass, or throws the answer to it.
    ///
    /// - Parameter peer: the address of the connection's peer.
    /// - Returns: the request with its client; ``ended(_:)`` must be called for it.
    func begin(
        _ head: HTTPRequestHead,
        from peer: SocketAddress?,
        isWebSocket: Bool,
        now: Duration
    ) throws(HTTPExchange.LastWord) -> PassedRequest {
        var client = ConnectionCounter.Address(peer)
        var isForwarded = false
        switch forwarded.client(of: head.headers, from: peer) {
        case .peer: break
        case .client(let address):
            client = ConnectionCounter.Address(address)
            isForwarded = true
        case .contradiction:
            throw HTTPExchange.LastWord(
                status: .badRequest,
                text:
                    "Forwarded and X-Forwarded-For name different clients; the proxy should set both, or remove one.\n"
            )
        }
        guard site != nil else { throw startingAnswer(to: head) }
        // A WebSocket counts as a connection and not as a request.
        if isWebSocket { return PassedRequest(client: client, isCounted: false) }
        // An API key has a rate of its own. Only keys that the API has accepted count as such.
        let key = head.uri.hasPrefix("/v1/") ? knownKeys.key(of: head.headers) : nil
        let isAllowed = key.map { keys.allows($0, now: now) } ?? strangers.allows(client, now: now)
        guard isAllowed else { throw Self.tooManyRequests }
        if isForwarded, let refusal = counter.beginRequest(of: client) {
            metrics.refused(refusal)
            throw Self.tooManyRequests
        }
        return PassedRequest(client: client, isCounted: isForwarded)
    }

    /// Counts and logs a failed TLS handshake.
    ///
    /// - Parameters:
    ///   - reason: the reason, for people.
    ///   - peer: the address of the connection's peer.
    func handshakeFailed(_ reason: String, from peer: SocketAddress?) {
        metrics.handshakeFailed()
        handshakes.handshakeFailed(reason, address: peer?.ipAddress, to: logger)
    }

    /// Notes that a request was answered, or that its connection was closed.
    func ended(_ request: PassedRequest) {
        if request.isCounted { counter.endRequest(of: request.client) }
    }

    private static let tooManyRequests = HTTPExchange.LastWord(
        status: .tooManyRequests,
        text: "Too many requests from this address or with this key; try again later.\n"
    )

    private func startingAnswer(to head: HTTPRequestHead) -> HTTPExchange.LastWord {
        let path = head.uri.prefix { $0 != "?" }
        let isHealth = path == "/healthz" && (head.method == .GET || head.method == .HEAD)
        let text = isHealth ? "ok\n" : "\(health.text)\n"
        return HTTPExchange.LastWord(
            status: isHealth ? .ok : .serviceUnavailable,
            // The answer to HEAD has no body (RFC 9110, section 9.3.2).
            text: head.method == .HEAD ? "" : text
        )
    }
}

/// A request that the gate let pass.
struct PassedRequest: Sendable, Hashable {
    let client: ConnectionCounter.Address
    /// Whether the request counts for its client. It does if a proxy forwarded it, because a proxy's connection counts
    /// for no client.
    let isCounted: Bool
}

/// Limits the rate of requests of each payer with a token bucket. A payer is an address or a key. There are never more
/// than ``maxPayers`` buckets.
///
/// State: one `Mutex`.
final class HTTPRateLimit<Payer: Hashable & Sendable>: Sendable {
    static var maxPayers: Int { 4_096 }

    private let rate: Int
    private let burst: Int
    private let buckets = Mutex<[Payer: TokenBucket]>([:])

    /// - Parameters:
    ///   - rate: the requests per second of one payer.
    ///   - burst: the largest number of requests at once.
    init(rate: Int, burst: Int) {
        self.rate = rate
        self.burst = burst
    }

    /// The number of known payers.
    var count: Int { buckets.withLock { $0.count } }

    /// Takes a token of a payer, and returns whether there was one.
    func allows(_ payer: Payer, now: Duration) -> Bool {
        buckets.withLock { buckets in
            var bucket = buckets[payer] ?? TokenBucket(burst: burst, now: now)
            let isAllowed = bucket.hasToken(rate: rate, burst: burst, now: now)
            if isAllowed { bucket.take() }
            // If there are too many payers, all buckets are reset.
            if buckets.count >= Self.maxPayers, buckets[payer] == nil { buckets.removeAll(keepingCapacity: true) }
            buckets[payer] = bucket
            return isAllowed
        }
    }
}

/// The metrics of the HTTP port, created once.
struct HTTPMetrics: Sendable {
    private static let statuses: [HTTPResponseStatus] = [
        .badRequest, .requestTimeout, .payloadTooLarge, .tooManyRequests, .requestHeaderFieldsTooLarge, .notImplemented,
        .serviceUnavailable, .httpVersionNotSupported,
    ]

    private let byStatus: [UInt: Counter]
    private let byRefusal: [ConnectionCounter.Refusal: Counter]
    private let logins = LoginMetrics(gateway: "http")

    init() {
        byStatus = Dictionary(
            uniqueKeysWithValues: Self.statuses.map { status in
                let dimensions = [("status", String(status.code))]
                return (status.code, Counter(label: "hermes_http_refused_total", dimensions: dimensions))
            }
        )
        byRefusal = Dictionary(
            uniqueKeysWithValues: ConnectionCounter.Refusal.allCases.map { refusal in
                let dimensions = [("gateway", "http"), ("reason", refusal.rawValue)]
                return (refusal, Counter(label: "hermes_connections_refused_total", dimensions: dimensions))
            }
        )
    }

    /// Counts a request that was refused before it was handled.
    func refused(_ status: HTTPResponseStatus) { byStatus[status.code]?.increment() }

    func refused(_ refusal: ConnectionCounter.Refusal) { byRefusal[refusal]?.increment() }

    /// Counts a failed TLS handshake.
    func handshakeFailed() { logins.handshakeFailed() }
}
