// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Logging
import NIOCore
import Synchronization

/// What the connections of one listener share; the limits are resolved to what the handlers count in.
///
/// State: one `Mutex` around the number of open connections, taken once per open and once per close.
package final class ListenerState: Sendable {
    package let name: String
    package let limits: ConnectionLimits
    private let maxFrameBytes: Int
    /// After this long without a sign of life a connection is closed.
    package let idleTimeout: Duration
    package let logger: Logger
    package let metrics: GatewayMetrics
    let takesCertificateNames: Bool
    /// Where clients' certificates may have been taken back; else nil.
    let revocations: TLSContextBox?
    /// Where the connections are counted that end their count themselves.
    let counter: ConnectionCounter?
    /// What strangers may have sent; nil: no limit.
    let loginBudget: LoginBudget?
    /// What accounts and addresses may cause; nil: as much as their connections.
    let rates: SharedRates?
    let authenticationTicks: UInt32
    let idleTicks: UInt32
    let graceTicks: UInt32
    let stuckTicks: UInt32
    private let openConnections = Mutex(Open())

    private struct Open {
        var count = 0
        var isDraining = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// After an error or a farewell the peer has this long to read it and to close.
    package static let closeGrace = Duration.seconds(2)
    /// Requests without an answer; beyond that a connection is not read from until there are fewer.
    package static let maxUnanswered = 1_024
    /// What these may hold, in bytes: one more is read as long as it is less.
    package static let maxUnansweredBytes = 256 << 10

    /// - Parameters:
    ///   - name: the gateway's.
    ///   - maxFrameBytes: the longest body of a frame.
    ///   - takesCertificateNames: whether the common name of a client's certificate is its user name.
    ///   - revocations: knows the clients' certificates that were taken back; nil: none is.
    ///   - counter: where its connections are counted.
    ///   - loginBudget: what strangers may have sent, over all listeners; nil: no limit.
    ///   - rates: what accounts and addresses may cause.
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
        logger: Logger
    ) {
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
        authenticationTicks = LoopContext.ticks(limits.timeToAuthenticate)
        idleTicks = LoopContext.ticks(idleTimeout)
        graceTicks = LoopContext.ticks(Self.closeGrace)
        stuckTicks = LoopContext.ticks(limits.stuck)
    }

    func maxFrameBytes(_ isAuthenticated: Bool) -> Int {
        isAuthenticated ? maxFrameBytes : min(maxFrameBytes, limits.maxLoginFrameBytes)
    }

    /// Open connections of this listener.
    package var openCount: Int { openConnections.withLock { $0.count } }

    /// No connection is taken any more.
    var isDraining: Bool { openConnections.withLock { $0.isDraining } }

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

    /// Returns once no connection is open.
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
