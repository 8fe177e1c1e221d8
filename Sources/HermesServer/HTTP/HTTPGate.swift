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
/// State: a `Mutex` around the site, one in each rate and one in the readiness; only one is held at a time.
final class HTTPGate: Sendable {
    /// The site that is served once the server has started.
    struct Site: Sendable {
        let webSockets: [WebSocketEndpoint]
        let origins: WebOrigins
    }

    /// A request for the server's state. It has a separate rate, which other requests of the same address cannot use
    /// up. Otherwise anybody behind the address of a health check could make a ready server look broken.
    private enum Check: Hashable {
        case alive
        case ready

        /// - Returns: nil for any other request.
        init?(_ head: HTTPRequestHead) {
            guard head.method == .GET || head.method == .HEAD else { return nil }
            switch head.uri.prefix(while: { $0 != "?" }) {
            case "/healthz": self = .alive
            case "/readyz": self = .ready
            default: return nil
            }
        }
    }

    /// A check and the address that asks for it.
    private struct Prober: Hashable {
        let check: Check
        let address: ConnectionCounter.Address
    }

    let limits: HTTPExchange.Limits
    let forwarded: ForwardedClient
    let metrics: HTTPMetrics
    let counter: ConnectionCounter
    let uptime: @Sendable () -> Duration
    /// The keys that the API accepted recently; the API keeps them up to date.
    let knownKeys = KnownKeys()
    private let health: HealthState
    /// Logs failed TLS handshakes, at most one a second.
    private let handshakes = LoginLog()
    private let logger: Logger
    private let strangers = HTTPRateLimit<ConnectionCounter.Address>(
        rate: HTTPGate.strangerRate,
        burst: HTTPGate.strangerBurst
    )
    private let probers = HTTPRateLimit<Prober>(rate: HTTPGate.strangerRate, burst: HTTPGate.strangerBurst)
    /// The rate of a key for requests that the API's own rate does not count: requests to paths without a scope or
    /// without a route, and requests with keys that were revoked after the API had accepted them. This rate is four
    /// times the API's own rate. Only a refusal by the API's own rate states when to try again.
    private let keys: HTTPRateLimit<Int>
    private let opened = Mutex<(site: Site, readiness: Readiness?)?>(nil)

    /// The requests per second of an address, or of a connection whose client is hidden.
    private static let strangerRate = 100
    /// The largest number of such requests at once.
    private static let strangerBurst = 200

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
    var site: Site? { opened.withLock { $0?.site } }

    /// - Parameter readiness: answers `/readyz`; nil if the port does not have this path.
    func open(_ site: Site, readiness: Readiness? = nil) { opened.withLock { $0 = (site, readiness) } }

    /// Whether a request becomes a WebSocket.
    func isWebSocket(_ head: HTTPRequestHead) -> Bool {
        guard head.headers.contains(name: "upgrade"), let site else { return false }
        return WebSocketUpgrader.endpoint(for: head, of: site) != nil
    }

    /// Lets a request pass, or throws the answer to it.
    ///
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - bucket: the rate of this connection, which is used only if the client is hidden.
    /// - Returns: the request with its client; ``ended(_:)`` must be called for it.
    func begin(
        _ head: HTTPRequestHead,
        from peer: HTTPPeer,
        isWebSocket: Bool,
        bucket: inout TokenBucket?,
        now: Duration
    ) throws(HTTPExchange.LastWord) -> PassedRequest {
        var client = peer.counted
        var isForwarded = false
        switch forwarded.client(of: head.headers, from: peer.address) {
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
        guard let present = opened.withLock(\.self) else { throw startingAnswer(to: head) }
        // A WebSocket counts as a connection and not as a request.
        if isWebSocket { return PassedRequest(client: client, isCounted: false) }
        let check = Check(head)
        if let check {
            let isAllowed =
                client == .hidden
                ? Self.takesOwn(&bucket, now: now)
                : probers.allows(Prober(check: check, address: client), now: now)
            if !isAllowed, let word = word(on: check, head, present.readiness) { throw word }
        } else {
            // An API key has its own rate, but only after the API has accepted the key.
            let key = head.uri.hasPrefix("/v1/") ? knownKeys.key(of: head.headers) : nil
            let isAllowed =
                if let key {
                    keys.allows(key, now: now)
                } else if client == .hidden {
                    Self.takesOwn(&bucket, now: now)
                } else {
                    strangers.allows(client, now: now)
                }
            guard isAllowed else { throw Self.tooManyRequests }
        }
        // The check of a server's state must not fail because others behind the same address have many connections.
        let isCounted = isForwarded && check == nil
        if isCounted, let refusal = counter.beginRequest(of: client) {
            metrics.refused(refusal)
            throw Self.tooManyRequests
        }
        return PassedRequest(client: client, isCounted: isCounted)
    }

    /// Takes a token of a connection whose client is hidden, and returns whether there was one.
    private static func takesOwn(_ bucket: inout TokenBucket?, now: Duration) -> Bool {
        var own = bucket ?? TokenBucket(burst: strangerBurst, now: now)
        let isAllowed = own.hasToken(rate: strangerRate, burst: strangerBurst, now: now)
        if isAllowed { own.take() }
        bucket = own
        return isAllowed
    }

    /// Returns the answer to a check that exceeds its rate. The answer is the last known state. It costs as little as
    /// a refusal, and it ends the connection, too.
    ///
    /// - Returns: nil if no recent state is known; the request must then pass.
    private func word(
        on check: Check,
        _ head: HTTPRequestHead,
        _ readiness: Readiness?
    ) -> HTTPExchange.LastWord? {
        guard let readiness else { return Self.tooManyRequests }
        var (isOK, text) = (true, "ok\n")
        if check == .ready {
            if health.current == .ready {
                guard let verdict = readiness.recent() else { return nil }
                (isOK, text) = (verdict == .ready, verdict.text)
            } else {
                (isOK, text) = (false, "\(health.text)\n")
            }
        }
        return Self.state(isOK, text, to: head)
    }

    /// Returns an answer about the server's state. The answer to HEAD has no body (RFC 9110, section 9.3.2).
    private static func state(_ isOK: Bool, _ text: String, to head: HTTPRequestHead) -> HTTPExchange.LastWord {
        HTTPExchange.LastWord(status: isOK ? .ok : .serviceUnavailable, text: head.method == .HEAD ? "" : text)
    }

    /// Counts and logs a failed TLS handshake.
    ///
    /// - Parameters:
    ///   - reason: the reason, for people.
    ///   - peer: the client's address; nil if it is not known.
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
        let isAlive = Check(head) == .alive
        return Self.state(isAlive, isAlive ? "ok\n" : "\(health.text)\n", to: head)
    }
}

/// A request that the gate let pass.
struct PassedRequest: Sendable, Hashable {
    let client: ConnectionCounter.Address
    /// Whether the request counts for its client. A forwarded request counts, because a proxy's connection counts for
    /// no client. Checks of the server's state never count.
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
