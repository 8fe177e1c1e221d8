// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Metrics

/// What clients count, summed up in the server's metrics. Labels of networks are the clients' and not used as labels.
enum DelimitedStatistics {
    private static let received = Counter(label: "hermes_client_received_total")
    private static let duplicates = Counter(label: "hermes_client_duplicates_total")
    private static let gaps = Counter(label: "hermes_client_gaps_total")
    private static let repaired = Counter(label: "hermes_client_repaired_total")
    private static let lost = Counter(label: "hermes_client_lost_total")
    private static let heartbeatTimeouts = Counter(label: "hermes_client_heartbeat_timeouts_total")

    static func count(_ statistics: Hermes_V1_Statistics) {
        for network in statistics.networks.prefix(16) {
            add(network.received, to: received)
            add(network.duplicates, to: duplicates)
            add(network.gaps, to: gaps)
            add(network.repaired, to: repaired)
            add(network.lost, to: lost)
            add(network.heartbeatTimeouts, to: heartbeatTimeouts)
        }
    }

    /// A client may say anything: what is beyond reason is cut.
    private static func add(_ count: UInt64, to counter: Counter) {
        guard count > 0 else { return }
        counter.increment(by: Int64(min(count, 1_000_000)))
    }
}
