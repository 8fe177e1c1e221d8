// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of rows in a step, so that a step takes a small part of a ``TimeSlice``. The number follows the time that
/// the last steps took, because rows from a cold disk take much longer than rows in memory.
struct StepSize {
    private(set) var rows = 64

    private static let range = 8...512

    mutating func learn(_ time: Duration) {
        if time > TimeSlice.duration / 2 { rows = max(Self.range.lowerBound, rows / 2) }
        if time < TimeSlice.duration / 8 { rows = min(Self.range.upperBound, rows * 2) }
    }
}
