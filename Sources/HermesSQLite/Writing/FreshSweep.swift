// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// One pass through fresh tables in the order of their keys. It moves a slice of their rows with each commit. So each
/// page of the large tables is written once per pass, as if all rows moved at once, and an inbox's older entries move
/// first.
///
/// The sweep is part of the writer's caches, so that a failed commit also undoes its slice.
struct FreshSweep {
    /// The number of rows that starts a sweep: enough for many rows per page.
    static let startRows = 20_000
    /// The smallest number of rows that one commit moves from each table if the time suffices. Moving this many rows
    /// takes a few milliseconds.
    static let sliceRows = 250

    private var left: [(tables: FreshTables, place: FreshTables.Place)]
    /// The number of rows added since the sweep began. Rows at places that the sweep has already passed wait for the
    /// next sweep.
    private(set) var appended = 0
    private var stepSize = StepSize()

    init(_ tables: [FreshTables]) { left = tables.map { ($0, .beginning) } }

    var isDone: Bool { left.isEmpty }

    /// The place that the sweep has reached in the first of the remaining tables; nil if no table remains.
    var place: FreshTables.Place? { left.first?.place }

    /// Returns the part of a ``TimeSlice`` for operations: all of it if there is no sweep. The rest is for the sweep.
    /// A late sweep gets more time, so that it always ends.
    static func share(of time: TimeSlice, beside sweep: FreshSweep?, isLate: Bool) -> Duration {
        sweep == nil ? time.duration : time.duration / (isLate ? 4 : 2)
    }

    /// Moves the next slice of each table: twice as many rows as the commit added, but at least ``sliceRows``. The
    /// factor of two makes sure that the sweep ends. Moves fewer rows if the time is spent.
    mutating func step(_ db: Database, appended rows: Int, _ time: TimeSlice) throws {
        appended += rows
        let limit = max(Self.sliceRows, 2 * rows)
        for index in left.indices.reversed() {
            var count = 0
            var before = time.elapsed
            repeat {
                let tables = left[index].tables
                let moved = try tables.move(db, after: left[index].place, limit: min(stepSize.rows, limit - count))
                count += moved.rows
                guard let last = moved.last else {
                    left.remove(at: index)
                    break
                }
                left[index].place = last
                let now = time.elapsed
                stepSize.learn(now - before)
                before = now
            } while count < limit && !time.isSpent
        }
    }
}
