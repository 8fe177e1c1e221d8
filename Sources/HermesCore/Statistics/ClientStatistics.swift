// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The clients' reports about connections and deliveries.
///
/// ```swift
/// let groups = messenger.clientStatistics.history.groups(.day, now: messenger.time.now())
/// for (version, counts) in DeliveryHistory.versions(of: groups) {
///     print(version, counts[.within1s], counts[.within10s], counts[.later], counts[.never])
/// }
/// ```
///
/// State: one `Mutex`.
package final class ClientStatistics: Sendable {
    /// The maximum number of app versions that have their own metrics.
    package static let maxMetricVersions = 64
    /// One account may introduce at most this many app versions that have their own metrics. So an account that invents
    /// versions cannot use up the metrics for all other accounts.
    package static let maxMetricVersionsPerAccount = 4

    private struct State: Sendable {
        var history = DeliveryHistory()
        var priors = HeartbeatPriors()
        var metricVersions: Set<String> = []
        /// The number of ``metricVersions`` that each account was the first to report.
        var introduced: [UserID: Int] = [:]
        var reports = AccountAllowance(ClientStatistics.reportsPerHour, each: .seconds(3_600))
    }

    /// The maximum number of reports of an account in an hour. This number is sufficient for fifty devices.
    package static let reportsPerHour = 3_000

    /// A report, and the data that is needed to count it.
    package struct Received: Sendable, Hashable {
        let report: ClientReport
        let user: UserID
        let learnsHeartbeats: Bool
    }

    private let state = Mutex(State())
    /// Called when a client of this node has sent a report.
    let received = Hook<Received>()

    package init() {}

    /// Charges the allowance of an account for a report. All connections of the account share this allowance.
    ///
    /// - Throws: `.rateLimited`.
    package func admitReport(of user: UserID, uptime: Duration) throws(HermesError) {
        guard let wait = state.withLock({ $0.reports.take(1, of: user, now: uptime) }) else { return }
        throw HermesError(.rateLimited, "this account has sent too many statistics", retryAfter: wait)
    }

    /// Adds a report of a client of this node.
    ///
    /// - Parameters:
    ///   - user: the account of the client.
    ///   - learnsHeartbeats: whether the settled heartbeat intervals in the report are used for other clients.
    /// - Returns: the app version under which metrics count the report. After ``maxMetricVersions`` different versions
    ///   since the start, each further version counts as ``DeliveryHistory/other``. A new version also counts as
    ///   ``DeliveryHistory/other`` if its account has already introduced ``maxMetricVersionsPerAccount`` versions.
    package func add(_ report: ClientReport, of user: UserID, learnsHeartbeats: Bool, now: Timestamp) -> String {
        let new = Received(report: report, user: user, learnsHeartbeats: learnsHeartbeats)
        defer { received(new) }
        add(new, now: now)
        return state.withLock { state in
            guard !state.metricVersions.contains(report.appVersion) else { return report.appVersion }
            guard state.metricVersions.count < Self.maxMetricVersions,
                state.introduced[user, default: 0] < Self.maxMetricVersionsPerAccount
            else { return DeliveryHistory.other }
            state.metricVersions.insert(report.appVersion)
            state.introduced[user, default: 0] += 1
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

    /// The history of the reports, for reading it and for storing it.
    package var history: DeliveryHistory { state.withLock { $0.history } }

    /// Continues the history that an earlier process has stored; called before the first report.
    package func resume(_ history: DeliveryHistory) { state.withLock { $0.history = history } }

    /// Returns a good first heartbeat interval for a network; nil if too little is known.
    package func heartbeat(in label: String) -> Duration? { state.withLock { $0.priors.interval(in: label) } }
}
