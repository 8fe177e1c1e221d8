// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The time that a transaction works before it leaves the rest to the next one, so that no client waits long for
/// another's data.
struct TimeSlice {
    /// The time of a transaction that can be cut. Writing its pages to the log takes some 0.1 ms more. A message waits
    /// for the running transaction and for its own: on the way there, and again for the answer.
    static let duration = Duration.milliseconds(5)
    /// The time if each commit waits for the disk, which takes about as long or longer.
    static let durationWithSync = Duration.milliseconds(20)
    /// The time of a transaction that nobody waits for but those who keep it busy. Its own cost, and that of pages that
    /// many rows share, is borne by more rows.
    static let longest = Duration.milliseconds(20)

    private(set) var duration: Duration
    private let clock: any TimeSource
    private let start: Duration

    /// Starts now.
    init(_ clock: any TimeSource, _ duration: Duration) {
        self.clock = clock
        self.duration = duration
        start = clock.uptime()
    }

    /// The time since its start.
    var elapsed: Duration { clock.uptime() - start }

    var isSpent: Bool { elapsed >= duration }

    /// The transaction may go on.
    mutating func extend() { duration = max(duration, Self.longest) }

    /// The transaction, which has gone on, ends soon: what it has to do besides operations gets half of a usual slice.
    mutating func end(_ slice: Duration) { duration = min(duration, elapsed + slice / 2) }
}

/// The number of rows of a step that takes a small part of a ``TimeSlice``; follows the time that the last steps took,
/// because rows from a cold disk take much longer than those in memory.
struct StepSize {
    private(set) var rows = 64

    private static let range = 8...512

    mutating func learn(_ time: Duration) {
        if time > TimeSlice.duration / 2 { rows = max(Self.range.lowerBound, rows / 2) }
        if time < TimeSlice.duration / 8 { rows = min(Self.range.upperBound, rows * 2) }
    }
}
