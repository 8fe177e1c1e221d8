// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The deliveries of the last 24 hours as clients report them, per app version. Pure; time is passed in.
///
/// The window slides by slots of an hour: it covers the present hour and the 23 before. Versions beyond the limit are
/// counted together under ``other``.
package struct DeliveryStatistics: Sendable {
    /// The reports of one version's clients.
    package struct Version: Hashable, Sendable {
        /// The app's own version; empty: none; ``DeliveryStatistics/other``: a version beyond the limit.
        package var appVersion: String
        package var counts: DeliveryCounts
        /// The number of reports.
        package var reports: Int
    }

    private struct Slot: Sendable {
        var number: Int64
        var versions: [String: Version] = [:]
    }

    /// The name for versions beyond the limit.
    package static let other = "other"
    /// The length of the window.
    package static let window = Duration.seconds(86_400)

    private static let slotMilliseconds: Int64 = 3_600_000
    private static let slotCount: Int64 = 24
    private let maxVersions: Int
    private var slots: [Slot] = []

    /// - Parameter maxVersions: the number of separate versions.
    package init(maxVersions: Int = 64) { self.maxVersions = max(1, maxVersions) }

    /// Adds a client's report.
    ///
    /// - Returns: the version under which the report is counted.
    @discardableResult
    package mutating func add(_ report: ClientReport, now: Timestamp) -> String {
        forget(now: now)
        let number = Self.number(of: now)
        // A clock that was put back: the report counts for the newest slot.
        if slots.last.map({ $0.number < number }) ?? true { slots.append(Slot(number: number)) }
        let known = Set(slots.flatMap(\.versions.keys))
        let isKnown = known.contains(report.appVersion)
        let name = isKnown || known.subtracting([Self.other]).count < maxVersions ? report.appVersion : Self.other
        let empty = Version(appVersion: name, counts: DeliveryCounts(), reports: 0)
        slots[slots.count - 1].versions[name, default: empty].counts.add(report.counts)
        slots[slots.count - 1].versions[name, default: empty].reports += 1
        return name
    }

    /// The reports in the window, sorted by version.
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
