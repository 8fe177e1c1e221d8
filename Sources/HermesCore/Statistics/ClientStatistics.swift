// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The clients' reports about connections and deliveries.
///
/// ```swift
/// for (version, counts) in messenger.clientStatistics.versions(.day, now: messenger.time.now()) {
///     print(version, counts[.within1s], counts[.within10s], counts[.later], counts[.never])
/// }
/// ```
///
/// State: one `Mutex`.
package final class ClientStatistics: Sendable {
    /// The number of versions of apps that get metrics of their own.
    package static let maxMetricVersions = 64

    private struct State: Sendable {
        var history = DeliveryHistory()
        var priors = HeartbeatPriors()
        var metricVersions: Set<String> = []
        var reports = AccountAllowance(ClientStatistics.reportsPerHour, each: .seconds(3_600))
    }

    /// The most reports of an account in an hour: as many as fifty devices make.
    package static let reportsPerHour = 3_000

    /// A report, and how it counts.
    package struct Received: Sendable, Hashable {
        let report: ClientReport
        let user: UserID
        let learnsHeartbeats: Bool
    }

    private let state = Mutex(State())
    /// A client of this node has sent a report.
    let received = Hook<Received>()

    package init() {}

    /// Takes a report from the allowance of an account; a new connection has no allowance of its own.
    ///
    /// - Throws: `.rateLimited`.
    package func admitReport(of user: UserID, uptime: Duration) throws(HermesError) {
        guard let wait = state.withLock({ $0.reports.take(1, of: user, now: uptime) }) else { return }
        throw HermesError(.rateLimited, "this account has sent too many statistics", retryAfter: wait)
    }

    /// Adds a report of a client of this node.
    ///
    /// - Parameters:
    ///   - user: whose client it is.
    ///   - learnsHeartbeats: whether its settled heartbeat intervals are used for other clients.
    /// - Returns: the app version under which metrics count the report: since the start one of few.
    package func add(_ report: ClientReport, of user: UserID, learnsHeartbeats: Bool, now: Timestamp) -> String {
        let new = Received(report: report, user: user, learnsHeartbeats: learnsHeartbeats)
        defer { received(new) }
        add(new, now: now)
        return state.withLock { state in
            guard !state.metricVersions.contains(report.appVersion) else { return report.appVersion }
            guard state.metricVersions.count < Self.maxMetricVersions else { return DeliveryHistory.other }
            state.metricVersions.insert(report.appVersion)
            return report.appVersion
        }
    }

    /// Adds a report of a client of any node.
    func add(_ received: Received, now: Timestamp) {
        state.withLock { state in
            if received.learnsHeartbeats {
                for network in received.report.networks where network.isHeartbeatStable {
                    state.priors.settled(at: network.heartbeat, in: network.label, by: received.user)
                }
            }
            state.history.add(received.report, now: now)
        }
    }

    /// The reports, for reading and for keeping.
    package var history: DeliveryHistory { state.withLock { $0.history } }

    /// Continues what an earlier process has kept; called before the first report.
    package func resume(_ history: DeliveryHistory) { state.withLock { $0.history = history } }

    /// The sums per app version, sorted by it.
    package func versions(
        _ period: DeliveryHistory.Period,
        now: Timestamp
    ) -> [(appVersion: String, counts: ReportCounts)] {
        DeliveryHistory.versions(of: history.groups(period, now: now))
    }

    /// A good first heartbeat interval for a network; nil if too little is known.
    package func heartbeat(in label: String) -> Duration? { state.withLock { $0.priors.interval(in: label) } }
}
