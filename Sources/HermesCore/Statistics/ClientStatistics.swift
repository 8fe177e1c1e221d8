// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The clients' reports about connections and deliveries.
///
/// ```swift
/// for version in messenger.clientStatistics.delivery(now: messenger.time.now()) {
///     print(version.appVersion, version.counts.within1s, version.counts.within10s, version.counts.later, version.counts.lost)
/// }
/// ```
///
/// State: one `Mutex`.
package final class ClientStatistics: Sendable {
    private struct State: Sendable {
        var delivery = DeliveryStatistics()
        var priors = HeartbeatPriors()
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds a client's report.
    ///
    /// - Parameter learnsHeartbeats: whether its settled heartbeat intervals are used for other clients.
    /// - Returns: the app version under which the report is counted.
    package func add(_ report: ClientReport, learnsHeartbeats: Bool, now: Timestamp) -> String {
        state.withLock { state in
            if learnsHeartbeats {
                for network in report.networks where network.isHeartbeatStable {
                    state.priors.settled(at: network.heartbeat, in: network.label)
                }
            }
            return state.delivery.add(report, now: now)
        }
    }

    /// The reports of the last 24 hours, per app version.
    package func delivery(now: Timestamp) -> [DeliveryStatistics.Version] {
        state.withLock { $0.delivery.versions(now: now) }
    }

    /// A good first heartbeat interval for a network; nil if too little is known.
    package func heartbeat(in label: String) -> Duration? { state.withLock { $0.priors.interval(in: label) } }
}
