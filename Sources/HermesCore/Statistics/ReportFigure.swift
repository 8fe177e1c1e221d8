// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A count that the server keeps of clients' reports. A new one comes last: the file of the history holds the counts in
/// this order.
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

    /// Its meaning, for the API's document.
    package var summary: String {
        switch self {
        case .reports: "The number of reports; a report about two networks counts twice."
        case .received: "Entries that were received, each counted once."
        case .within1s: "Received within a second."
        case .within10s: "Received within ten seconds, and not within one."
        case .later: "Received later."
        case .never: "Lost and not repaired."
        case .duplicates: "Received again, and dropped."
        case .gaps: "Gaps in the numbers that were noticed."
        case .repaired: "Entries that were missing and fetched."
        case .topicMissed: "Pushes to topics and rooms that did not arrive."
        case .closed: "Connections that the server closed."
        case .reset: "Connections that broke."
        case .heartbeatTimeout: "Connections whose heartbeat was not answered."
        case .networkChange: "Connections that ended with a change of the network."
        case .heartbeat30: "Reports whose last heartbeat interval was at most 30 s."
        case .heartbeat60: "More than 30 s, at most 60 s."
        case .heartbeat120: "More than 60 s, at most 120 s."
        case .heartbeat300: "More than 120 s, at most 300 s."
        case .heartbeat600: "More than 300 s, at most 600 s."
        case .heartbeatLonger: "More than 600 s."
        }
    }

    /// The server's metric of the figure; nil: none, or one with labels.
    package var metric: String? {
        switch self {
        case .never: "hermes_client_lost_total"
        case .reports, .within1s, .within10s, .later, .closed, .reset, .heartbeatTimeout, .networkChange, .heartbeat30,
            .heartbeat60, .heartbeat120, .heartbeat300, .heartbeat600, .heartbeatLonger:
            nil
        case .received: "hermes_client_received_total"
        case .duplicates: "hermes_client_duplicates_total"
        case .gaps: "hermes_client_gaps_total"
        case .repaired: "hermes_client_repaired_total"
        case .topicMissed: "hermes_client_topic_missed_total"
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

    /// The largest believed count, because a client may report anything.
    static let most: UInt64 = 1_000_000

    package init() { values = Array(repeating: 0, count: ReportFigure.allCases.count) }

    /// The counts of a report about one network.
    package init(_ network: ClientReport.Network) {
        self = network.counts
        self[.reports] = 1
        if let heartbeat = ReportFigure(heartbeat: network.heartbeat) { self[heartbeat] = 1 }
    }

    package subscript(figure: ReportFigure) -> UInt64 {
        get { values[figure.rawValue] }
        set { values[figure.rawValue] = newValue }
    }

    var clamped: Self {
        var copy = self
        for column in values.indices { copy.values[column] = min(values[column], Self.most) }
        return copy
    }

    /// Adds counts in the order of the figures.
    mutating func add(_ counts: some Collection<UInt32>) {
        for (column, count) in zip(values.indices, counts) { values[column] &+= UInt64(count) }
    }

    mutating func add(_ other: ReportCounts) {
        for column in values.indices { values[column] &+= other.values[column] }
    }
}
