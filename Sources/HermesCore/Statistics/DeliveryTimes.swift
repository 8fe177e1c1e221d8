// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A histogram of deliveries by the time that they took. Does no I/O.
package struct DeliveryTimes: Sendable, Hashable {
    /// The upper bounds of the classes, in microseconds: six for each power of ten, from 100 µs to 10 s.
    package static let bounds: [Int64] =
        decades.flatMap { decade in steps.map { decade * $0 } } + [10_000_000]

    private static let decades: [Int64] = [10, 100, 1_000, 10_000, 100_000]
    private static let steps: [Int64] = [10, 15, 20, 30, 50, 70]

    /// The number of deliveries in each class. The last class has the deliveries above all bounds.
    package private(set) var counts = Array(repeating: UInt64(0), count: bounds.count + 1)
    /// The sum of the times, in microseconds.
    package private(set) var sum: UInt64 = 0

    package init() {}

    /// - Parameter time: the time that a delivery took. A negative time counts as 0. A clock that was set back can
    ///   cause a negative time.
    package mutating func add(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        let whole = seconds.multipliedReportingOverflow(by: 1_000_000)
        let microseconds = whole.overflow ? .max : max(0, whole.partialValue &+ attoseconds / 1_000_000_000_000)
        var (low, high) = (0, Self.bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.bounds[middle] < microseconds { low = middle + 1 } else { high = middle }
        }
        counts[low] &+= 1
        sum &+= UInt64(microseconds)
    }

    package mutating func add(_ other: DeliveryTimes) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum &+= other.sum
    }

    /// Returns the deliveries that were added since `earlier`.
    package func since(_ earlier: DeliveryTimes) -> DeliveryTimes {
        var difference = self
        for index in counts.indices { difference.counts[index] &-= earlier.counts[index] }
        difference.sum &-= earlier.sum
        return difference
    }

    package var count: UInt64 { counts.reduce(0, &+) }

    /// Returns the time that this share of the deliveries did not exceed, in microseconds. As in Prometheus, the
    /// deliveries of a class are assumed to be spread evenly over the range of the class.
    ///
    /// - Parameter share: from 0 to 1.
    /// - Returns: nil if there are no deliveries.
    package func quantile(_ share: Double) -> Double? {
        let count = count
        guard count > 0 else { return nil }
        let rank = share * Double(count)
        var below = 0.0
        for (index, bound) in Self.bounds.enumerated() {
            let here = Double(counts[index])
            if below + here >= rank, here > 0 {
                let start = Double(index == 0 ? 0 : Self.bounds[index - 1])
                return start + (Double(bound) - start) * max(0, rank - below) / here
            }
            below += here
        }
        return Self.bounds.last.map(Double.init)
    }
}
