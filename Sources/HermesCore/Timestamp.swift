// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A time of the wall clock, in milliseconds since 1970-01-01 UTC. Use it to store and show times, never to measure
/// intervals.
public struct Timestamp: RawRepresentable, Hashable, Comparable, Sendable {
    /// The milliseconds.
    public var rawValue: Int64

    /// Creates the time that is `rawValue` milliseconds after 1970-01-01 UTC.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// Compares the times.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// Returns the time that is `duration` later. The result saturates instead of overflowing.
    package func advanced(by duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return Timestamp(rawValue: seconds < 0 ? .min : .max) }
        let milliseconds = scaled + attoseconds / 1_000_000_000_000_000
        let (sum, overflowed) = rawValue.addingReportingOverflow(milliseconds)
        return Timestamp(rawValue: overflowed ? (milliseconds < 0 ? .min : .max) : sum)
    }
}
