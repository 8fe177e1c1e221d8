// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import Logging
import NIOCore
import Synchronization

/// The state that the connections of one listener share, with time limits in steps of ``LoopContext/deadlineStep``.
///
/// State: one `Mutex` around the number of open connections, taken once per open and once per close.
package final class ListenerState: Sendable {
    package let name: String
    package let limits: ConnectionLimits
    private let maxFrameBytes: Int
    /// The time without a sign of life after which a connection is closed.
    package let idleTimeout: Duration
    package let logger: Logger
    package let metrics: GatewayMetrics
    /// The log of failed logins.
    let logins: LoginLog
    let takesCertificateNames: Bool
    /// The revocation lists for clients' certificates; nil if none are configured.
    let revocations: TLSContextBox?
    /// The counter for connections that remove themselves from the count when they close.
    let counter: ConnectionCounter?
    /// The bytes that unauthenticated connections may send; nil for no limit.
    let loginBudget: LoginBudget?
    /// The request rates of accounts and addresses; nil if only connections have limits.
    let rates: SharedRates?
    let authenticationSteps: UInt32
    let idleSteps: UInt32
    let graceSteps: UInt32
    let stuckSteps: UInt32
    private let openConnections = Mutex(Open())
    private let failedReads = LineThrottle()

    private struct Open {
        var count = 0
        var isDraining = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The time that the peer has to read an error or farewell, and to close the connection.
    package static let closeGrace = Duration.seconds(2)
    /// The number of unanswered requests at which the server stops reading from a connection.
    package static let maxUnanswered = 1_024
    /// The bytes of unanswered requests at which the server stops reading from a connection.
    package static let maxUnansweredBytes = 256 << 10

    /// - Parameters:
    ///   - name: the gateway's name.
    ///   - maxFrameBytes: the longest body of a frame.
    ///   - takesCertificateNames: whether the common name of a client's certificate is the client's user name.
    ///   - revocations: the revoked certificates of clients; nil if there are none.
    ///   - counter: counts the listener's connections.
    ///   - loginBudget: the bytes that unauthenticated connections may send, over all listeners; nil for no limit.
    ///   - rates: the request rates of accounts and addresses.
    ///   - logins: the log of failed logins, over all listeners.
    package init(
        name: String,
        limits: ConnectionLimits,
        idleTimeout: Duration,
        maxFrameBytes: Int,
        takesCertificateNames: Bool = false,
        revocations: TLSContextBox? = nil,
        counter: ConnectionCounter? = nil,
        loginBudget: LoginBudget? = nil,
        rates: SharedRates? = nil,
        logins: LoginLog = LoginLog(),
        logger: Logger
    ) {
        self.logins = logins
        self.name = name
        self.takesCertificateNames = takesCertificateNames
        self.revocations = revocations
        self.counter = counter
        self.loginBudget = loginBudget
        self.rates = rates
        self.limits = limits
        self.maxFrameBytes = maxFrameBytes
        self.idleTimeout = idleTimeout
        var logger = logger
        logger[metadataKey: "gateway"] = "\(name)"
        self.logger = logger
        metrics = GatewayMetrics(gateway: name)
        authenticationSteps = LoopContext.steps(limits.timeToAuthenticate)
        idleSteps = LoopContext.steps(idleTimeout)
        graceSteps = LoopContext.steps(Self.closeGrace)
        stuckSteps = LoopContext.steps(limits.stuck)
    }

    func maxFrameBytes(_ isAuthenticated: Bool) -> Int {
        isAuthenticated ? maxFrameBytes : min(maxFrameBytes, limits.maxLoginFrameBytes)
    }

    /// The number of open connections of this listener.
    package var openCount: Int { openConnections.withLock { $0.count } }

    /// Whether new connections are refused.
    var isDraining: Bool { openConnections.withLock { $0.isDraining } }

    /// Logs that a connection could not read from the store. There is at most one line a minute for each kind of read
    /// and each error, because very many reads fail while the store fails.
    ///
    /// - Parameters:
    ///   - what: what could not be read.
    ///   - now: the time of a clock that never goes back.
    func noteFailedRead(of what: String, _ error: HermesError, now: Duration) {
        guard let skipped = failedReads.skipped("\(what) \(error.code.rawValue)", now: now) else { return }
        var metadata: Logger.Metadata = ["code": "\(error.code.rawValue)"]
        if skipped > 0 { metadata["skipped"] = "\(skipped)" }
        logger.warning("\(what) could not be read", metadata: metadata)
    }

    func beginDraining() { openConnections.withLock { $0.isDraining = true } }

    func opened() { openConnections.withLock { $0.count += 1 } }

    func closed() {
        let waiters = openConnections.withLock { open in
            open.count -= 1
            guard open.count == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { open.waiters = [] }
            return open.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when no connection is open.
    func allClosed() async {
        await withCheckedContinuation { waiter in
            let isDone = openConnections.withLock { open in
                if open.count > 0 { open.waiters.append(waiter) }
                return open.count == 0
            }
            if isDone { waiter.resume() }
        }
    }
}
