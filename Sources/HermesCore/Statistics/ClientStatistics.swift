// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What clients report about their connections and deliveries.
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

    /// A client has reported.
    ///
    /// - Parameter learnsHeartbeats: whether its settled heartbeat intervals are for other clients, too.
    /// - Returns: the name of the app's version under which the report is counted.
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

    /// What was reported in the last 24 hours, per version of the app.
    package func delivery(now: Timestamp) -> [DeliveryStatistics.Version] {
        state.withLock { $0.delivery.versions(now: now) }
    }

    /// A good first heartbeat interval in a network; nil if too little is known.
    package func heartbeat(in label: String) -> Duration? { state.withLock { $0.priors.interval(in: label) } }
}
