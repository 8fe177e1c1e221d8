// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A client's counts since its last report, checked.
package struct ClientReport: Hashable, Sendable {
    /// The counts of one network.
    package struct Network: Hashable, Sendable {
        /// The client's name for the kind of network, for example "wifi"; empty: none.
        package var label: String
        package var counts: DeliveryCounts
        /// The last heartbeat interval.
        package var heartbeat: Duration
        /// Whether the client's search for the interval had ended.
        package var isHeartbeatStable: Bool

        /// Checks a label.
        ///
        /// - Throws: `.invalidArgument` if it is longer than 64 bytes or not printable.
        package init(
            label: String,
            counts: DeliveryCounts,
            heartbeat: Duration = .zero,
            isHeartbeatStable: Bool = false
        ) throws(HermesError) {
            self.label = try ClientReport.name(label, atMost: ClientReport.maxLabelBytes, "network label")
            self.counts = counts.clamped
            self.heartbeat = heartbeat
            self.isHeartbeatStable = isHeartbeatStable
        }
    }

    /// The app's version; empty: none.
    package var appVersion: String
    package var networks: [Network]

    /// The most networks in a report.
    package static let maxNetworks = 16
    package static let maxVersionBytes = 32
    package static let maxLabelBytes = 64

    /// Checks a report.
    ///
    /// - Throws: `.invalidArgument` if there are too many networks, or the version is longer than 32 bytes or not printable.
    package init(appVersion: String, networks: [Network]) throws(HermesError) {
        guard networks.count <= Self.maxNetworks else {
            throw HermesError(.invalidArgument, "a report holds at most \(Self.maxNetworks) networks")
        }
        self.appVersion = try Self.name(appVersion, atMost: Self.maxVersionBytes, "app version")
        self.networks = networks
    }

    /// The sum over all networks.
    package var counts: DeliveryCounts { networks.reduce(into: DeliveryCounts()) { $0.add($1.counts) } }

    /// Checks a name that may become a label of a metric.
    package static func name(_ text: String, atMost bytes: Int, _ what: String) throws(HermesError) -> String {
        guard text.utf8.count <= bytes, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
            throw HermesError(.invalidArgument, "\(what): at most \(bytes) bytes of printable ASCII")
        }
        return text
    }
}

/// Counts of inbox entries by delivery, and of ends of connections by cause.
package struct DeliveryCounts: Hashable, Sendable {
    /// Entries that arrived, without duplicates.
    package var received: UInt64 = 0
    /// Entries that arrived again.
    package var duplicates: UInt64 = 0
    /// Missing seqs that were noticed; each is finally repaired or lost.
    package var gaps: UInt64 = 0
    package var repaired: UInt64 = 0
    /// Never delivered.
    package var lost: UInt64 = 0
    /// Delivered within 1 s of the server's time stamp.
    package var within1s: UInt64 = 0
    /// Later, within 10 s.
    package var within10s: UInt64 = 0
    /// Later than 10 s.
    package var later: UInt64 = 0
    /// Connections that the server closed.
    package var closed: UInt64 = 0
    package var resets: UInt64 = 0
    package var heartbeatTimeouts: UInt64 = 0
    package var networkChanges: UInt64 = 0
    /// Pushes to topics and rooms that did not arrive.
    package var topicMissed: UInt64 = 0

    package init() {}

    /// The largest believed count, because a client may report anything.
    static let most: UInt64 = 1_000_000

    private static let all: [any WritableKeyPath<Self, UInt64> & Sendable] = [
        \.received, \.duplicates, \.gaps, \.repaired, \.lost, \.within1s, \.within10s, \.later, \.closed, \.resets,
        \.heartbeatTimeouts, \.networkChanges, \.topicMissed,
    ]

    var clamped: Self {
        var copy = self
        for count in Self.all { copy[keyPath: count] = min(copy[keyPath: count], Self.most) }
        return copy
    }

    mutating func add(_ other: Self) {
        for count in Self.all { self[keyPath: count] &+= other[keyPath: count] }
    }
}
