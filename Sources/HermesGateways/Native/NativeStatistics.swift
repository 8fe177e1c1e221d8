// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Metrics

/// Adds clients' reports to the server's metrics. Network labels come from clients and do not become metric labels.
package enum NativeStatistics {
    private static let totals = ReportFigure.allCases.compactMap { figure in
        figure.metric.map { (metric: $0, figure: figure) }
    }
    private static let ends: [(cause: String, figure: ReportFigure)] = [
        ("closed", .closed), ("reset", .reset), ("heartbeat", .heartbeatTimeout), ("network", .networkChange),
    ]
    private static let deliveries: [(within: String, figure: ReportFigure)] = [
        ("1s", .within1s), ("10s", .within10s), ("later", .later), ("never", .never),
    ]

    /// Creates the metrics, so that they are shown before the first report.
    package static func start() {
        for (metric, _) in totals { _ = Counter(label: metric) }
        for (cause, _) in ends { _ = counterOfEnds(cause) }
        for (within, _) in deliveries { _ = counterOfDeliveries("other", within) }
    }

    private static func counterOfEnds(_ cause: String) -> Counter {
        Counter(label: "hermes_client_connection_ends_total", dimensions: [("cause", cause)])
    }

    private static func counterOfDeliveries(_ version: String, _ within: String) -> Counter {
        Counter(
            label: "hermes_client_deliveries_total",
            dimensions: [("app_version", version), ("within", within)]
        )
    }

    /// Adds a report to the metrics.
    ///
    /// - Parameter version: the app version under which the report is counted. The number of versions in the metrics is
    ///   limited.
    static func count(_ report: ClientReport, as version: String) {
        let counts = report.counts
        for (metric, figure) in totals where counts[figure] > 0 { add(counts[figure], to: Counter(label: metric)) }
        for (cause, figure) in ends where counts[figure] > 0 { add(counts[figure], to: counterOfEnds(cause)) }
        for (within, figure) in deliveries where counts[figure] > 0 {
            add(counts[figure], to: counterOfDeliveries(version, within))
        }
    }

    private static func add(_ count: UInt64, to counter: Counter) { counter.increment(by: Int64(clamping: count)) }
}

extension ClientReport {
    /// Parses a report.
    ///
    /// - Throws: `.tooLarge` if the report exceeds a limit; `.invalidArgument` if a value is invalid.
    init(_ statistics: Hermes_V1_Statistics) throws(HermesError) {
        guard statistics.networks.count <= Self.maxNetworks else {
            throw HermesError(.tooLarge, "a report holds at most \(Self.maxNetworks) networks")
        }
        var networks: [Network] = []
        for network in statistics.networks {
            guard network.fromMs <= network.toMs else {
                throw HermesError(.invalidArgument, "to_ms is below from_ms")
            }
            var counts = ReportCounts()
            for figure in ReportFigure.allCases {
                if let field = figure.field { counts[figure] = network[keyPath: field] }
            }
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

extension ReportFigure {
    /// The report's field for the figure; nil if clients do not report the figure.
    fileprivate var field: KeyPath<Hermes_V1_NetworkStatistics, UInt64>? {
        switch self {
        case .received: \.received
        case .within1s: \.within1S
        case .within10s: \.within10S
        case .later: \.later
        case .never: \.lost
        case .duplicates: \.duplicates
        case .gaps: \.gaps
        case .repaired: \.repaired
        case .topicMissed: \.topicMissed
        case .closed: \.closed
        case .reset: \.resets
        case .heartbeatTimeout: \.heartbeatTimeouts
        case .networkChange: \.networkChanges
        case .reports, .heartbeat30, .heartbeat60, .heartbeat120, .heartbeat300, .heartbeat600, .heartbeatLonger: nil
        }
    }
}

extension NativeConnection {
    /// The shortest time between two reports of a connection.
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
        NativeStatistics.count(report, as: version)
        succeed(id)
    }
}

extension GatewayEnvironment {
    /// Returns the heartbeat interval, in seconds, to suggest to a client in a network with this label. Returns 0 if no
    /// interval is known, or if the server makes no suggestions.
    func heartbeatPrior(in label: String) -> UInt32 {
        guard settings.clients.sharesHeartbeats, label.utf8.count <= ClientReport.maxLabelBytes,
            let interval = messenger.clientStatistics.heartbeat(in: label)
        else { return 0 }
        return UInt32(clamping: interval.components.seconds)
    }
}
