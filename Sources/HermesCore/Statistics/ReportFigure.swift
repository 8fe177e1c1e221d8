// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A figure that the server counts in clients' reports. New figures must be added at the end, because the file of the
/// history holds the counts in this order.
package enum ReportFigure: Int, CaseIterable, Sendable {
    /// The number of reports about the network.
    case reports
    case received, within1s, within10s, later, never
    case duplicates, gaps, repaired, topicMissed
    /// The numbers of ended connections, by cause.
    case closed, reset, heartbeatTimeout, networkChange
    /// The numbers of reports by class of the last heartbeat interval. The interval is at most the number of seconds in
    /// the class's name, and more than the number in the name of the previous class.
    case heartbeat30, heartbeat60, heartbeat120, heartbeat300, heartbeat600
    case heartbeatLonger

    /// The figure's name in JSON documents.
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

    /// The figure's meaning, for the description of the HTTP API.
    package var summary: String {
        switch self {
        case .reports: "The number of reports; a report about two networks counts twice."
        case .received: "Entries that were received, each counted once."
        case .within1s: "Received within a second."
        case .within10s: "Received within ten seconds, and not within one."
        case .later: "Received later."
        case .never: "Lost and not repaired."
        case .duplicates: "Received again, and dropped."
        case .gaps: "Noticed gaps in the sequence numbers."
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

    /// The name of the server's metric for the figure; nil if there is none, or if the metric has labels.
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

    /// Creates the class of a heartbeat interval; returns nil if no interval was reported.
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

    /// The largest accepted count. Larger counts are reduced to this count, because a client may report any number.
    static let most: UInt64 = 1_000_000

    package init() { values = Array(repeating: 0, count: ReportFigure.allCases.count) }

    /// Creates the counts of a report about one network.
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
