// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A histogram of durations in nanoseconds. Durations of 2048 ns or more fall into classes whose width is at most a
/// thousandth of the duration. Shorter durations are exact.
struct LatencyHistogram: Sendable {
    /// Each value below this limit has its own class. From the limit on, each power of two has ``classesPerPower``
    /// classes.
    private static let exact = 2048
    private static let classesPerPower = exact / 2
    /// The longest duration, about 18 minutes. A longer duration counts as this one.
    private static let longest: UInt64 = 1 << 40 - 1

    private var counts = [UInt32](repeating: 0, count: Self.index(Self.longest) + 1)
    private(set) var totalCount = 0
    private(set) var max: UInt64 = 0

    mutating func record(_ nanoseconds: UInt64) {
        counts[Self.index(min(nanoseconds, Self.longest))] &+= 1
        totalCount += 1
        max = Swift.max(max, nanoseconds)
    }

    mutating func reset() {
        for index in counts.indices { counts[index] = 0 }
        totalCount = 0
        max = 0
    }

    /// Returns the least duration that `percent` percent of the recorded durations do not exceed. It is rounded up to
    /// the end of its class. The result is 0 if no duration is recorded.
    ///
    /// - Parameter percent: from 0 to 100.
    func valueAtPercentile(_ percent: Double) -> UInt64 {
        let wanted = Swift.max(1, Int((percent / 100 * Double(totalCount)).rounded(.up)))
        var seen = 0
        for (index, count) in counts.enumerated() where count > 0 {
            seen += Int(count)
            if seen >= wanted { return min(Self.last(of: index), max) }
        }
        return max
    }

    private static func index(_ value: UInt64) -> Int {
        guard value >= exact else { return Int(value) }
        // The number of low bits that a class ignores.
        let shift = UInt64.bitWidth - value.leadingZeroBitCount - exact.trailingZeroBitCount
        return shift * classesPerPower + Int(value >> UInt64(shift))
    }

    /// Returns the longest duration of a class.
    private static func last(of index: Int) -> UInt64 {
        guard index >= exact else { return UInt64(index) }
        let shift = UInt64(index / classesPerPower - 1)
        let leading = UInt64(index % classesPerPower + classesPerPower)
        return (leading + 1) << shift - 1
    }
}
