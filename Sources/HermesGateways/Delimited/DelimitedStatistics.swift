// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Metrics

/// Adds clients' reports to the server's metrics. Network labels come from clients and do not become metric labels.
enum DelimitedStatistics {
    private static let received = Counter(label: "hermes_client_received_total")
    private static let duplicates = Counter(label: "hermes_client_duplicates_total")
    private static let gaps = Counter(label: "hermes_client_gaps_total")
    private static let repaired = Counter(label: "hermes_client_repaired_total")
    private static let lost = Counter(label: "hermes_client_lost_total")
    private static let topicMissed = Counter(label: "hermes_client_topic_missed_total")
    private static let ends: [(cause: String, count: any KeyPath<DeliveryCounts, UInt64> & Sendable)] = [
        ("closed", \.closed), ("reset", \.resets), ("heartbeat", \.heartbeatTimeouts), ("network", \.networkChanges),
    ]
    private static let deliveries: [(within: String, count: any KeyPath<DeliveryCounts, UInt64> & Sendable)] = [
        ("1s", \.within1s), ("10s", \.within10s), ("later", \.later), ("never", \.lost),
    ]

    /// Adds a report to the metrics.
    ///
    /// - Parameter version: the app version under which it is counted, one of few.
    static func count(_ report: ClientReport, as version: String) {
        let counts = report.counts
        add(counts.received, to: received)
        add(counts.duplicates, to: duplicates)
        add(counts.gaps, to: gaps)
        add(counts.repaired, to: repaired)
        add(counts.lost, to: lost)
        add(counts.topicMissed, to: topicMissed)
        for end in ends where counts[keyPath: end.count] > 0 {
            let counter = Counter(label: "hermes_client_connection_ends_total", dimensions: [("cause", end.cause)])
            add(counts[keyPath: end.count], to: counter)
        }
        for delivery in deliveries where counts[keyPath: delivery.count] > 0 {
            let counter = Counter(
                label: "hermes_client_deliveries_total",
                dimensions: [("app_version", version), ("within", delivery.within)]
            )
            add(counts[keyPath: delivery.count], to: counter)
        }
    }

    private static func add(_ count: UInt64, to counter: Counter) {
        if count > 0 { counter.increment(by: Int64(clamping: count)) }
    }
}

extension ClientReport {
    /// Parses a report.
    ///
    /// - Throws: `.invalidArgument` if it breaks a limit.
    init(_ statistics: Hermes_V1_Statistics) throws(HermesError) {
        guard statistics.networks.count <= Self.maxNetworks else {
            throw HermesError(.invalidArgument, "a report holds at most \(Self.maxNetworks) networks")
        }
        var networks: [Network] = []
        for network in statistics.networks {
            guard network.fromMs <= network.toMs else {
                throw HermesError(.invalidArgument, "a span ends before it begins")
            }
            var counts = DeliveryCounts()
            counts.received = network.received
            counts.duplicates = network.duplicates
            counts.gaps = network.gaps
            counts.repaired = network.repaired
            counts.lost = network.lost
            counts.within1s = network.within1S
            counts.within10s = network.within10S
            counts.later = network.later
            counts.closed = network.closed
            counts.resets = network.resets
            counts.heartbeatTimeouts = network.heartbeatTimeouts
            counts.networkChanges = network.networkChanges
            counts.topicMissed = network.topicMissed
            networks.append(
                try Network(
                    label: network.label,
                    counts: counts,
                    heartbeat: .seconds(Int64(network.heartbeatSeconds)),
                    isHeartbeatStable: network.heartbeatStable
                )
            )
        }
        try self.init(appVersion: statistics.appVersion, networks: networks)
    }
}

extension DelimitedConnection {
    /// The least time between two reports of a connection.
    private static let reportInterval = Duration.seconds(10)

    func statistics(_ request: Hermes_V1_Statistics, id: UInt64, from sender: Sender) {
        let now = messenger.time.uptime()
        if let last = lastReport, now - last < Self.reportInterval {
            let wait = Self.reportInterval - (now - last)
            return fail(id, HermesError(.rateLimited, "statistics are accepted once in 10 s", retryAfter: wait))
        }
        let report: ClientReport
        do throws(HermesError) {
            report = try ClientReport(request)
            try messenger.clientStatistics.admitReport(of: sender.principal.user, uptime: now)
        } catch {
            return fail(id, error)
        }
        lastReport = now
        let version = messenger.clientStatistics.add(
            report,
            of: sender.principal.user,
            learnsHeartbeats: environment.settings.clients.sharesHeartbeats,
            now: messenger.time.now()
        )
        DelimitedStatistics.count(report, as: version)
        succeed(id)
    }
}

extension GatewayEnvironment {
    /// The heartbeat interval for a client in the network with this label, in seconds; 0 if none is known or suggested.
    func heartbeatPrior(in label: String) -> UInt32 {
        guard settings.clients.sharesHeartbeats, label.utf8.count <= ClientReport.maxLabelBytes,
            let interval = messenger.clientStatistics.heartbeat(in: label)
        else { return 0 }
        return UInt32(clamping: interval.components.seconds)
    }
}
