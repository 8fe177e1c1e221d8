// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The counts of clients' reports by group, in one row for each interval of time. Intervals without reports have no
/// row. Does no I/O.
struct ReportRing: Sendable, Hashable {
    struct Row: Sendable, Hashable {
        static let columns = ReportFigure.allCases.count

        let number: Int64
        /// The groups that have counts. Each group occurs only once.
        private(set) var groups: [UInt8] = []
        /// The counts, one for each ``ReportFigure``, group by group. A count that has reached its maximum stays at
        /// this maximum.
        private(set) var counts: [UInt32] = []

        init(number: Int64) { self.number = number }

        /// - Returns: nil if the counts do not match the groups.
        init?(number: Int64, groups: [UInt8], counts: [UInt32]) {
            guard counts.count == groups.count * Self.columns, Set(groups).count == groups.count else { return nil }
            self.number = number
            self.groups = groups
            self.counts = counts
        }

        mutating func add(_ added: some Collection<UInt64>, of group: UInt8) {
            let place = groups.firstIndex(of: group) ?? groups.count
            if place == groups.count {
                groups.append(group)
                counts += repeatElement(0, count: Self.columns)
            }
            for (column, count) in zip(place * Self.columns..<(place + 1) * Self.columns, added) {
                let (sum, isFull) = counts[column].addingReportingOverflow(UInt32(clamping: count))
                counts[column] = isFull ? .max : sum
            }
        }

        /// Adds the counts of one group to another group, and removes the first group.
        mutating func fold(_ group: UInt8, into other: UInt8) {
            guard let place = groups.firstIndex(of: group) else { return }
            let moved = counts(at: place).map { UInt64($0) }
            groups.remove(at: place)
            counts.removeSubrange(place * Self.columns..<(place + 1) * Self.columns)
            add(moved, of: other)
        }

        func counts(at place: Int) -> ArraySlice<UInt32> {
            counts[place * Self.columns..<(place + 1) * Self.columns]
        }
    }

    /// The length of an interval, in milliseconds.
    let interval: Int64
    /// The number of intervals that the ring covers.
    let length: Int
    /// The rows, ascending by number.
    private(set) var rows: [Row] = []

    init(interval: Int64, length: Int) {
        self.interval = interval
        self.length = length
    }

    /// - Returns: nil if the rows are not in order, or if there are too many rows.
    init?(interval: Int64, length: Int, rows: [Row]) {
        self.init(interval: interval, length: length)
        guard rows.count <= length, zip(rows, rows.dropFirst()).allSatisfy({ $0.number < $1.number }),
            // The times of all rows must be in the range of ``Timestamp``, so that no arithmetic on them overflows.
            rows.first.map({ $0.number >= 0 }) ?? true, rows.last.map({ $0.number < .max / interval }) ?? true
        else { return nil }
        self.rows = rows
    }

    func number(at time: Timestamp) -> Int64 { max(0, time.rawValue / interval) }

    mutating func add(_ counts: ReportCounts, of group: UInt8, at time: Timestamp) {
        let number = number(at: time)
        if let newest = rows.last?.number {
            // If the clock was set back by more than the time that the ring covers, the ring is emptied. If the clock
            // was set back by less, the report counts for the newest row.
            if newest - number >= Int64(length) { rows = [] }
        }
        if rows.last.map({ $0.number < number }) ?? true {
            rows.append(Row(number: number))
            rows.removeAll { $0.number <= number - Int64(length) }
        }
        rows[rows.count - 1].add(counts.values, of: group)
    }

    mutating func fold(_ group: UInt8, into other: UInt8) {
        for index in rows.indices { rows[index].fold(group, into: other) }
    }

    /// Returns the rows of the last `count` intervals, including the current interval.
    ///
    /// - Parameter count: the number of intervals.
    func last(_ count: Int, now: Timestamp) -> ArraySlice<Row> {
        let first = number(at: now) - Int64(count) + 1
        return rows.drop { $0.number < first }
    }
}
