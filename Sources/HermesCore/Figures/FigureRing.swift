// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The last values of a fixed set of figures, one row for each interval. Does no I/O; the size is fixed.
///
/// The number of a row is the time since 1970 divided by the interval. A row without values contains NaN.
package struct FigureRing: Sendable, Hashable {
    /// The interval, in milliseconds.
    package let interval: Int64
    package let rows: Int
    package let columns: Int
    /// The number of the newest row; nil if there is no row.
    package private(set) var newest: Int64?
    private(set) var values: [Float]

    package init(interval: Int64, rows: Int, columns: Int) {
        self.interval = interval
        self.rows = rows
        self.columns = columns
        values = Array(repeating: .nan, count: rows * columns)
    }

    /// - Parameter values: `rows × columns` values.
    init?(interval: Int64, rows: Int, columns: Int, newest: Int64?, values: [Float]) {
        guard values.count == rows * columns else { return nil }
        self.init(interval: interval, rows: rows, columns: columns)
        self.newest = newest
        self.values = values
    }

    package func number(at time: Timestamp) -> Int64 { time.rawValue / interval }

    /// Writes a row, which becomes the newest row. Rows between the previous newest row and the new row get no values.
    /// If the clock was set back, later rows lose their values, and earlier rows keep theirs.
    package mutating func set(_ row: some Collection<Float>, number: Int64) {
        guard row.count == columns, number >= 0 else { return }
        if let newest {
            let (first, last) = (min(newest, number) + 1, max(newest, number))
            for cleared in max(first, last - Int64(rows) + 1)..<last + 1 {
                replace(cleared, with: repeatElement(.nan, count: columns))
            }
        }
        newest = number
        replace(number, with: row)
    }

    private mutating func replace(_ number: Int64, with row: some Collection<Float>) {
        let start = Int(number % Int64(rows)) * columns
        values.replaceSubrange(start..<start + columns, with: row)
    }

    /// Returns a value; nil if there is none.
    package func value(_ column: Int, number: Int64) -> Float? {
        guard let newest, number <= newest, number > newest - Int64(rows), number >= 0 else { return nil }
        let value = values[Int(number % Int64(rows)) * columns + column]
        return value.isNaN ? nil : value
    }
}
