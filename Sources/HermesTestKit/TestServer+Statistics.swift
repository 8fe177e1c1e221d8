// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
package import HermesServer

/// Clients' reports, for tests that do not use the core.
extension TestServer {
    /// Settings of a server that shares learned heartbeats between clients.
    package static func sharingHeartbeats(_ settings: inout ServerSettings) {
        settings.gateways.clients.sharesHeartbeats = true
    }

    /// Reports that five clients have settled on this interval in networks of this kind.
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

    /// The reports of the clients of one version of the app.
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
    /// Inbox entries that arrived, without duplicates, and those within a second.
    package let received, within1s: UInt64
    /// Inbox entries that arrived again.
    package let duplicates: UInt64
    /// Inbox entries that were missing; those that came later, and those that never will.
    package let gaps, repaired, lost: UInt64
    /// Pushes to topics and rooms that did not arrive.
    package let missedPushes: UInt64
}
