// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Counts of durations in nanoseconds, in classes that are at most a thousandth of their value wide.
struct LatencyHistogram: Sendable {
    /// Values below this have a class each; from here on each power of two has half as many classes.
    private static let exact = 2048
    private static let classesPerPower = exact / 2
    /// About 18 minutes; longer times are counted as this long.
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

    /// The least duration that this part of all recorded ones does not exceed, or one of its class; 0 if there is none.
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
        // The number of bits that a class leaves out.
        let shift = UInt64.bitWidth - value.leadingZeroBitCount - exact.trailingZeroBitCount
        return shift * classesPerPower + Int(value >> UInt64(shift))
    }

    /// The longest duration of a class.
    private static func last(of index: Int) -> UInt64 {
        guard index >= exact else { return UInt64(index) }
        let shift = UInt64(index / classesPerPower - 1)
        let leading = UInt64(index % classesPerPower + classesPerPower)
        return (leading + 1) << shift - 1
    }
}
