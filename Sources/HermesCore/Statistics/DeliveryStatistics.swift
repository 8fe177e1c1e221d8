// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How deliveries went in the last 24 hours, by the clients' own reports, per version of the app. Pure; time is passed in.
///
/// The window slides by slots of an hour: what is told covers the present hour and the 23 before. So many versions are
/// told apart as fit; the others are counted together under ``other``.
package struct DeliveryStatistics: Sendable {
    /// What one version's clients reported.
    package struct Version: Hashable, Sendable {
        /// As the app calls it; empty: it does not tell; ``DeliveryStatistics/other``: one of those beyond the bound.
        package var appVersion: String
        package var counts: DeliveryCounts
        /// How many reports there were.
        package var reports: Int
    }

    private struct Slot: Sendable {
        var number: Int64
        var versions: [String: Version] = [:]
    }

    /// The name under which versions beyond the bound are counted.
    package static let other = "other"
    /// The length of the window.
    package static let window = Duration.seconds(86_400)

    private static let slotMilliseconds: Int64 = 3_600_000
    private static let slotCount: Int64 = 24
    private let maxVersions: Int
    private var slots: [Slot] = []

    /// - Parameter maxVersions: how many versions are told apart.
    package init(maxVersions: Int = 64) { self.maxVersions = max(1, maxVersions) }

    /// A client has reported.
    ///
    /// - Returns: the name under which the report is counted.
    @discardableResult
    package mutating func add(_ report: ClientReport, now: Timestamp) -> String {
        forget(now: now)
        let number = Self.number(of: now)
        // A clock that was put back: what comes then counts for the newest slot.
        if slots.last.map({ $0.number < number }) ?? true { slots.append(Slot(number: number)) }
        let known = Set(slots.flatMap(\.versions.keys))
        let isKnown = known.contains(report.appVersion)
        let name = isKnown || known.subtracting([Self.other]).count < maxVersions ? report.appVersion : Self.other
        let empty = Version(appVersion: name, counts: DeliveryCounts(), reports: 0)
        slots[slots.count - 1].versions[name, default: empty].counts.add(report.counts)
        slots[slots.count - 1].versions[name, default: empty].reports += 1
        return name
    }

    /// What was reported in the window, sorted by the versions' names.
    package func versions(now: Timestamp) -> [Version] {
        var sums: [String: Version] = [:]
        let first = Self.number(of: now) - Self.slotCount + 1
        for slot in slots where slot.number >= first {
            for (name, version) in slot.versions {
                let empty = Version(appVersion: name, counts: DeliveryCounts(), reports: 0)
                sums[name, default: empty].counts.add(version.counts)
                sums[name, default: empty].reports += version.reports
            }
        }
        return sums.values.sorted { $0.appVersion < $1.appVersion }
    }

    private mutating func forget(now: Timestamp) {
        let first = Self.number(of: now) - Self.slotCount + 1
        slots.removeAll { $0.number < first }
    }

    private static func number(of now: Timestamp) -> Int64 { now.rawValue / slotMilliseconds }
}
