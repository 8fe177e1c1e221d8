// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A count that the server keeps of clients' reports.
package enum ReportFigure: Int, CaseIterable, Sendable {
    /// Reports about the network.
    case reports
    case received, within1s, within10s, later, never
    case duplicates, gaps, repaired, topicMissed
    /// Ends of connections, by cause.
    case closed, reset, heartbeatTimeout, networkChange
    /// Reports whose last heartbeat interval was at most so many seconds, and more than the class before.
    case heartbeat30, heartbeat60, heartbeat120, heartbeat300, heartbeat600
    case heartbeatLonger

    /// Its name in documents.
    package var name: String {
        switch self {
        case .reports: "reports"
        case .received: "received"
        case .within1s: "within_1s"
        case .within10s: "within_10s"
        case .later: "later"
        case .never: "never"
        case .duplicates: "duplicates"
        case .gaps: "gaps"
        case .repaired: "repaired"
        case .topicMissed: "topic_missed"
        case .closed: "ended_closed"
        case .reset: "ended_reset"
        case .heartbeatTimeout: "ended_heartbeat"
        case .networkChange: "ended_network"
        case .heartbeat30: "heartbeat_30s"
        case .heartbeat60: "heartbeat_60s"
        case .heartbeat120: "heartbeat_120s"
        case .heartbeat300: "heartbeat_300s"
        case .heartbeat600: "heartbeat_600s"
        case .heartbeatLonger: "heartbeat_longer"
        }
    }

    /// The class of a heartbeat interval; nil: none was reported.
    init?(heartbeat: Duration) {
        switch heartbeat {
        case ...Duration.zero: return nil
        case ...Duration.seconds(30): self = .heartbeat30
        case ...Duration.seconds(60): self = .heartbeat60
        case ...Duration.seconds(120): self = .heartbeat120
        case ...Duration.seconds(300): self = .heartbeat300
        case ...Duration.seconds(600): self = .heartbeat600
        default: self = .heartbeatLonger
        }
    }
}

/// A count for each ``ReportFigure``.
package struct ReportCounts: Sendable, Hashable {
    private(set) var values: [UInt64]

    package init() { values = Array(repeating: 0, count: ReportFigure.allCases.count) }

    /// The counts of a report about one network.
    package init(_ network: ClientReport.Network) {
        self.init()
        let counts = network.counts
        self[.reports] = 1
        self[.received] = counts.received
        self[.within1s] = counts.within1s
        self[.within10s] = counts.within10s
        self[.later] = counts.later
        self[.never] = counts.lost
        self[.duplicates] = counts.duplicates
        self[.gaps] = counts.gaps
        self[.repaired] = counts.repaired
        self[.topicMissed] = counts.topicMissed
        self[.closed] = counts.closed
        self[.reset] = counts.resets
        self[.heartbeatTimeout] = counts.heartbeatTimeouts
        self[.networkChange] = counts.networkChanges
        if let heartbeat = ReportFigure(heartbeat: network.heartbeat) { self[heartbeat] = 1 }
    }

    package subscript(figure: ReportFigure) -> UInt64 {
        get { values[figure.rawValue] }
        set { values[figure.rawValue] = newValue }
    }

    /// Adds counts in the order of the figures.
    mutating func add(_ counts: some Collection<UInt32>) {
        for (column, count) in zip(values.indices, counts) { values[column] &+= UInt64(count) }
    }

    mutating func add(_ other: ReportCounts) {
        for column in values.indices { values[column] &+= other.values[column] }
    }
}
