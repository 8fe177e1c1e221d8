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
            counts: DeliveryCounts(),
            heartbeat: interval,
            isHeartbeatStable: true
        )
        let report = try ClientReport(appVersion: "1", networks: [network])
        for _ in 0..<HeartbeatPriors.quorum {
            _ = messenger.clientStatistics.add(report, learnsHeartbeats: true, now: messenger.time.now())
        }
    }

    /// The entries that clients of a version report as received, and those within a second.
    package func reported(appVersion: String) throws -> (received: UInt64, within1s: UInt64) {
        let messenger = try messenger()
        let versions = messenger.clientStatistics.delivery(now: messenger.time.now())
        let counts = versions.first { $0.appVersion == appVersion }?.counts ?? DeliveryCounts()
        return (counts.received, counts.within1s)
    }
}
