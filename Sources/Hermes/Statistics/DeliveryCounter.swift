// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Counts deliveries and ends of connections by kind of network, and keeps the counts until the server has them.
struct DeliveryCounter: Sendable {
    /// The counts that are not being uploaded, by kind of network.
    private var networks: [String: Hermes_V1_NetworkStatistics] = [:]
    /// The counts that are being uploaded.
    private var uploading: Hermes_V1_Statistics?
    /// The device's kind of network.
    private(set) var kind = ""

    /// The largest number of kinds of network that are counted separately. One of them is "other", which counts all
    /// further kinds. This number is also the limit for a report.
    static let maxNetworks = 16

    /// Whether no counts wait for an upload.
    var isEmpty: Bool { networks.isEmpty }

    /// Notes that the device entered this kind of network.
    mutating func entered(_ kind: String) { self.kind = kind }

    /// Counts an inbox entry that arrived. The latency is the time since the server's time stamp, in milliseconds; nil
    /// if the server's clock is unknown.
    mutating func received(latency: Int64?, date: Int64) {
        count(date) { network in
            network[.received] += 1
            switch latency {
            case nil: break
            case .some(...1000): network[.within1s] += 1
            case .some(...10_000): network[.within10s] += 1
            case .some: network[.later] += 1
            }
        }
    }

    /// Adds the counts of the inbox tracker.
    mutating func noticed(_ counts: InboxCounts, date: Int64) {
        guard counts != InboxCounts() else { return }
        count(date) { network in
            network[.duplicates] &+= counts.duplicates
            network[.gaps] &+= counts.gaps
            network[.repaired] &+= counts.repaired
            network[.lost] &+= counts.lost
        }
    }

    /// Counts lost pushes to a topic or a room.
    mutating func missedPushes(_ missed: UInt64, date: Int64) { count(date) { $0[.topicMissed] &+= missed } }

    /// Counts the end of a connection.
    mutating func ended(_ end: ConnectionEnd, in kind: String, date: Int64) {
        count(date, in: kind) { network in
            switch end {
            case .closed: network[.closed] += 1
            case .reset: network[.resets] += 1
            case .heartbeatTimeout: network[.heartbeatTimeouts] += 1
            case .networkChanged: network[.networkChanges] += 1
            }
        }
    }

    /// Notes the heartbeat that was learned for the present network. It is reported together with the counts.
    mutating func learned(_ heartbeat: LearnedHeartbeat, date: Int64) {
        let seconds = UInt32(clamping: max(0, heartbeat.interval.components.seconds))
        // A stable interval causes a report even if there are no counts. Other changes are only added to counts that
        // already exist.
        guard networks[kind] != nil || heartbeat.isStable else { return }
        if let known = networks[kind], known.heartbeatSeconds == seconds, known.heartbeatStable == heartbeat.isStable {
            return
        }
        count(date) { network in
            network.heartbeatSeconds = seconds
            network.heartbeatStable = heartbeat.isStable
        }
    }

    /// Removes and returns the counts to upload.
    ///
    /// - Returns: nil if there are no counts, or if an upload is under way.
    mutating func upload(appVersion: String) -> Hermes_V1_Statistics? {
        guard uploading == nil, !networks.isEmpty else { return nil }
        var statistics = Hermes_V1_Statistics()
        statistics.appVersion = appVersion
        statistics.networks = networks.values.sorted { $0.label < $1.label }
        networks = [:]
        uploading = statistics
        return statistics
    }

    /// Drops the upload, because the server has it or will never accept it.
    mutating func uploadEnded() { uploading = nil }

    /// Adds the upload to the other counts, because it may not have reached the server. A later upload repeats these
    /// counts.
    mutating func uploadFailed() {
        guard let statistics = uploading else { return }
        uploading = nil
        restore(statistics)
    }

    /// Returns all counts that may not have reached the server, for the next run of the app; nil if there are none.
    func unsent(appVersion: String) -> Hermes_V1_Statistics? {
        var copy = self
        copy.uploadFailed()
        return copy.upload(appVersion: appVersion)
    }

    /// Adds the counts of an earlier run or a failed upload.
    mutating func restore(_ statistics: Hermes_V1_Statistics) {
        for old in statistics.networks.prefix(Self.maxNetworks) {
            count(old.toMs, in: old.label) { network in
                network.fromMs = min(network.fromMs, old.fromMs)
                for count in ReportedCount.allCases { network[count] &+= old[count] }
                guard network.heartbeatSeconds == 0 else { return }
                network.heartbeatSeconds = old.heartbeatSeconds
                network.heartbeatStable = old.heartbeatStable
            }
        }
    }

    private mutating func count(
        _ date: Int64,
        in kind: String? = nil,
        _ body: (inout Hermes_V1_NetworkStatistics) -> Void
    ) {
        var label = kind ?? self.kind
        if networks[label] == nil, networks.count >= Self.maxNetworks - 1 { label = "other" }
        var network = networks[label] ?? Hermes_V1_NetworkStatistics()
        if networks[label] == nil {
            network.label = label
            network.fromMs = date
            network.toMs = date
        }
        // If the clock was set back, the span must not end before it begins.
        network.toMs = max(network.toMs, date)
        body(&network)
        networks[label] = network
    }
}

/// A count in a client's reports. All counts are changed through these cases. So ``DeliveryCounter/restore(_:)``, which
/// iterates over all cases, leaves no count out.
enum ReportedCount: CaseIterable {
    case received, duplicates, gaps, repaired, lost
    case within1s, within10s, later
    case closed, resets, heartbeatTimeouts, networkChanges
    case topicMissed

    fileprivate var field: WritableKeyPath<Hermes_V1_NetworkStatistics, UInt64> {
        switch self {
        case .received: \.received
        case .duplicates: \.duplicates
        case .gaps: \.gaps
        case .repaired: \.repaired
        case .lost: \.lost
        case .within1s: \.within1S
        case .within10s: \.within10S
        case .later: \.later
        case .closed: \.closed
        case .resets: \.resets
        case .heartbeatTimeouts: \.heartbeatTimeouts
        case .networkChanges: \.networkChanges
        case .topicMissed: \.topicMissed
        }
    }
}

extension Hermes_V1_NetworkStatistics {
    fileprivate subscript(count: ReportedCount) -> UInt64 {
        get { self[keyPath: count.field] }
        set { self[keyPath: count.field] = newValue }
    }
}
