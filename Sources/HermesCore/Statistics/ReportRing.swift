// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The counts of clients' reports by group, in rows of one length; rows without reports take no room. Pure.
struct ReportRing: Sendable, Hashable {
    struct Row: Sendable, Hashable {
        static let columns = ReportFigure.allCases.count

        let number: Int64
        /// The groups that have counts, each once.
        private(set) var groups: [UInt8] = []
        /// One for each ``ReportFigure``, group by group. A count that is full stays so.
        private(set) var counts: [UInt32] = []

        init(number: Int64) { self.number = number }

        /// - Returns: nil if the counts are not those of these groups.
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

        /// Counts one group's under another.
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

    /// In milliseconds.
    let interval: Int64
    /// The number of rows that the ring covers.
    let length: Int
    /// By number.
    private(set) var rows: [Row] = []

    init(interval: Int64, length: Int) {
        self.interval = interval
        self.length = length
    }

    /// - Returns: nil if the rows are not in order, or too many.
    init?(interval: Int64, length: Int, rows: [Row]) {
        self.init(interval: interval, length: length)
        guard rows.count <= length, zip(rows, rows.dropFirst()).allSatisfy({ $0.number < $1.number }),
            // The ends of Timestamp, so that no arithmetic on them overflows.
            rows.first.map({ $0.number >= 0 }) ?? true, rows.last.map({ $0.number < .max / interval }) ?? true
        else { return nil }
        self.rows = rows
    }

    func number(at time: Timestamp) -> Int64 { max(0, time.rawValue / interval) }

    mutating func add(_ counts: ReportCounts, of group: UInt8, at time: Timestamp) {
        let number = number(at: time)
        if let newest = rows.last?.number {
            // A clock that was put back by more than the ring covers: everything begins anew. By less: it counts for
            // the newest row.
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

    /// The rows of the last time, the present one included.
    ///
    /// - Parameter count: how many rows that time has.
    func last(_ count: Int, now: Timestamp) -> ArraySlice<Row> {
        let first = number(at: now) - Int64(count) + 1
        return rows.drop { $0.number < first }
    }
}
