// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
package import HermesServer

/// Access to clients' reports, for tests that do not use the core.
extension TestServer {
    /// Changes the settings so that the server shares learned heartbeats between clients.
    package static func sharingHeartbeats(_ settings: inout ServerSettings) {
        settings.gateways.clients.sharesHeartbeats = true
    }

    /// Reports to the server that five clients (the quorum) have settled on this interval in networks of this kind.
    package func settleHeartbeats(at interval: Duration, in label: String) throws {
        let messenger = try messenger()
        let network = try ClientReport.Network(
            label: label,
            counts: ReportCounts(),
            heartbeat: interval,
            isHeartbeatStable: true
        )
        let report = try ClientReport(appVersion: "1", networks: [network])
        for user in (1...Int32(HeartbeatPriors.quorum)).compactMap({ UserID($0) }) {
            _ = messenger.clientStatistics.add(report, of: user, learnsHeartbeats: true, now: messenger.time.now())
        }
    }

    /// Returns the counts from the reports of all clients with one version of the app.
    package func reported(appVersion: String) throws -> ReportedDelivery {
        let messenger = try messenger()
        let versions = messenger.clientStatistics.versions(.day, now: messenger.time.now())
        let counts = versions.first { $0.appVersion == appVersion }?.counts ?? ReportCounts()
        return ReportedDelivery(
            received: counts[.received],
            within1s: counts[.within1s],
            duplicates: counts[.duplicates],
            gaps: counts[.gaps],
            repaired: counts[.repaired],
            lost: counts[.never],
            missedPushes: counts[.topicMissed]
        )
    }
}

/// The counts of deliveries, as clients report them.
package struct ReportedDelivery: Sendable {
    /// The number of inbox entries that arrived, without duplicates, and how many of them arrived within a second.
    package let received, within1s: UInt64
    /// The number of inbox entries that arrived again.
    package let duplicates: UInt64
    /// The number of gaps in the inbox, and how many missing entries arrived later or will never arrive.
    package let gaps, repaired, lost: UInt64
    /// The number of pushes to topics and rooms that did not arrive.
    package let missedPushes: UInt64
}
