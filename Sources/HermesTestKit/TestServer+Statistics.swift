// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
package import HermesServer

/// What clients report, for tests that know no core.
extension TestServer {
    /// Settings of a server that tells clients what it learned from others.
    package static func sharingHeartbeats(_ settings: inout ServerSettings) {
        settings.gateways.clients.sharesHeartbeats = true
    }

    /// Five clients have settled on this interval in networks of this kind.
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

    /// How many entries the clients of a version report to have received, and how many of them within a second.
    package func reported(appVersion: String) throws -> (received: UInt64, within1s: UInt64) {
        let messenger = try messenger()
        let versions = messenger.clientStatistics.delivery(now: messenger.time.now())
        let counts = versions.first { $0.appVersion == appVersion }?.counts ?? DeliveryCounts()
        return (counts.received, counts.within1s)
    }
}
