// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reports of clients about deliveries, heartbeats and ends of connections, grouped by app version and network. The
/// last hour is kept in rows of ten seconds, and the last 30 days in rows of half an hour. Does no I/O; time is passed
/// in.
///
/// Clients choose the names of groups. If a new group does not fit, the group with the fewest reports is merged into
/// ``Group/other``. This happens at most once in ten seconds; until the next time, further new groups count as
/// ``Group/other``. The history uses at most about 10 MB of memory, regardless of the reports. It uses less than 2 MB
/// if the reports form ten groups.
package struct DeliveryHistory: Sendable, Hashable {
    /// A version of the app in one kind of network.
    package struct Group: Sendable, Hashable {
        /// The app's version; empty if it is unknown.
        package let appVersion: String
        /// The client's name for the kind of network; empty if it is unknown.
        package let network: String

        package init(appVersion: String, network: String) {
            self.appVersion = appVersion
            self.network = network
        }

        /// The group that stands for all groups beyond the limit.
        package static let other = Group(appVersion: DeliveryHistory.other, network: DeliveryHistory.other)
    }

    package enum Period: String, CaseIterable, Sendable {
        case hour, day, month

        package var length: Duration {
            switch self {
            case .hour: .seconds(3_600)
            case .day: .seconds(86_400)
            case .month: .seconds(30 * 86_400)
            }
        }
    }

    /// The counts of groups over time.
    package struct Series: Sendable, Hashable {
        /// The length of a row, in milliseconds.
        package let interval: Int64
        /// The time at which the first row begins.
        package let from: Timestamp
        package let rows: [ReportCounts]
    }

    /// The name of versions and networks beyond the limit.
    package static let other = "other"
    /// The maximum number of groups, including ``Group/other``.
    package static let maxGroups = 64
    /// The maximum number of rows of a ``Series``.
    package static let maxRows = 1_440

    static let emptyRecent = ReportRing(interval: 10_000, length: 360)
    static let emptyThin = ReportRing(interval: 1_800_000, length: maxRows)

    private let maxGroups: Int
    /// The groups; the first group is ``Group/other``.
    private(set) var groups = [Group.other]
    private var places: [Group: UInt8] = [.other: 0]
    private(set) var recent = emptyRecent
    private(set) var thin = emptyThin
    /// The number of the ten-second row in which a group was last merged into ``Group/other``.
    private var foldedIn: Int64?

    /// - Parameter maxGroups: the maximum number of groups; a value above ``maxGroups`` counts as ``maxGroups``.
    package init(maxGroups: Int = Self.maxGroups) { self.maxGroups = min(max(2, maxGroups), Self.maxGroups) }

    /// - Returns: nil if the groups do not match the rows.
    init?(groups: [Group], recent: ReportRing, thin: ReportRing) {
        self.init()
        guard groups.first == .other, groups.count <= maxGroups, Set(groups).count == groups.count,
            (recent.rows + thin.rows).allSatisfy({ $0.groups.allSatisfy { $0 < groups.count } })
        else { return nil }
        self.groups = groups
        self.recent = recent
        self.thin = thin
        for (place, group) in groups.enumerated() { places[group] = UInt8(place) }
    }

    /// Adds a client's report.
    package mutating func add(_ report: ClientReport, now: Timestamp) {
        for network in report.networks {
            let place = self.place(of: Group(appVersion: report.appVersion, network: network.label), now: now)
            let counts = ReportCounts(network)
            recent.add(counts, of: place, at: now)
            thin.add(counts, of: place, at: now)
        }
    }

    // MARK: Reading

    /// Returns the sums of the groups that have reports, sorted by name.
    package func groups(_ period: Period, now: Timestamp) -> [(group: Group, counts: ReportCounts)] {
        var sums: [UInt8: ReportCounts] = [:]
        for row in rows(period, now: now).rows {
            for (place, group) in row.groups.enumerated() {
                sums[group, default: ReportCounts()].add(row.counts(at: place))
            }
        }
        return sums.map { (groups[Int($0.key)], $0.value) }
            .sorted { ($0.group.appVersion, $0.group.network) < ($1.group.appVersion, $1.group.network) }
    }

    /// Returns the sums of groups for each app version, sorted by version.
    package static func versions(
        of groups: [(group: Group, counts: ReportCounts)]
    ) -> [(appVersion: String, counts: ReportCounts)] {
        var sums: [String: ReportCounts] = [:]
        for (group, counts) in groups { sums[group.appVersion, default: ReportCounts()].add(counts) }
        return sums.map { (appVersion: $0.key, counts: $0.value) }.sorted { $0.appVersion < $1.appVersion }
    }

    /// Returns the counts over time.
    ///
    /// - Parameters:
    ///   - appVersion: the app version whose reports count; nil for all versions.
    ///   - network: the network whose reports count; nil for all networks.
    package func series(_ period: Period, appVersion: String?, network: String?, now: Timestamp) -> Series {
        let isWanted = groups.map { group in
            (appVersion ?? group.appVersion) == group.appVersion && (network ?? group.network) == group.network
        }
        let (ring, count, found) = rows(period, now: now)
        let first = ring.number(at: now) - Int64(count) + 1
        var rows = Array(repeating: ReportCounts(), count: count)
        for row in found {
            // If the clock was set back, there are rows after the current time. Such rows are left out.
            guard row.number - first < Int64(count) else { break }
            for (place, group) in row.groups.enumerated() where isWanted[Int(group)] {
                rows[Int(row.number - first)].add(row.counts(at: place))
            }
        }
        return Series(interval: ring.interval, from: Timestamp(rawValue: first * ring.interval), rows: rows)
    }

    private func rows(
        _ period: Period,
        now: Timestamp
    ) -> (ring: ReportRing, count: Int, rows: ArraySlice<ReportRing.Row>) {
        let ring = period == .hour ? recent : thin
        let count = Int(period.length / .milliseconds(ring.interval))
        return (ring, count, ring.last(count, now: now))
    }

    // MARK: Groups

    private mutating func place(of group: Group, now: Timestamp) -> UInt8 {
        if let known = places[group] { return known }
        var place = UInt8(groups.count)
        if groups.count < maxGroups {
            groups.append(group)
        } else {
            // A merge goes through all rows. Clients that invent names must not cause merges again and again.
            let row = recent.number(at: now)
            guard row != foldedIn else { return 0 }
            foldedIn = row
            place = leastReported
            places[groups[Int(place)]] = nil
            recent.fold(place, into: 0)
            thin.fold(place, into: 0)
            groups[Int(place)] = group
        }
        places[group] = place
        return place
    }

    /// The index of the group with the fewest reports, except ``Group/other``. If several groups have equally few
    /// reports, this is the index of the group whose last report is the oldest.
    private var leastReported: UInt8 {
        var reports = Array(repeating: UInt64(0), count: groups.count)
        var last = Array(repeating: Int64(-1), count: groups.count)
        for row in thin.rows {
            for (place, group) in row.groups.enumerated() {
                reports[Int(group)] += UInt64(row.counts[place * ReportRing.Row.columns])
                last[Int(group)] = row.number
            }
        }
        let least = groups.indices.dropFirst().min { (reports[$0], last[$0]) < (reports[$1], last[$1]) }
        return UInt8(least ?? 0)
    }
}
