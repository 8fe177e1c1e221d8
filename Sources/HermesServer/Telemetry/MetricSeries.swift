// Hermes
// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Synchronization

/// A number that only grows.
final class CounterSeries: CounterHandler, Sendable {
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }

    func reset() { count.store(0, ordering: .relaxed) }

    var value: Int64 { count.load(ordering: .relaxed) }
}

/// A number that only grows and may be fractional.
final class FloatingPointCounterSeries: FloatingPointCounterHandler, Sendable {
    private let sum = GaugeSeries()

    func increment(by amount: Double) {
        guard amount.isFinite, amount > 0 else { return }
        sum.increment(by: amount)
    }

    func reset() { sum.set(0.0) }

    var value: Double { sum.value }
}

/// A number that goes up and down.
final class GaugeSeries: MeterHandler, RecorderHandler, Sendable {
    private let bits = Atomic<UInt64>(0)

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func increment(by amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let result = bits.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if result.exchanged { return }
            old = result.original
        }
    }

    func decrement(by amount: Double) { increment(by: -amount) }

    func record(_ value: Int64) { set(value) }

    func record(_ value: Double) { set(value) }

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// Counts values in a few fixed ranges.
final class HistogramSeries: RecorderHandler, TimerHandler, Sendable {
    /// Upper bounds in seconds, for timers: 100 µs … 10 s.
    static let timeBounds: [Double] = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]
    /// Upper bounds for numbers and sizes: 1 … 1,048,576.
    static let countBounds: [Double] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]

    /// The upper bounds of the ranges, ascending.
    let bounds: [Double]
    private let buckets: [CounterSeries]
    private let sumSeries = GaugeSeries()

    init(bounds: [Double]) {
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in CounterSeries() }
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard value.isFinite else { return }
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        buckets[index].increment(by: 1)
        sumSeries.increment(by: value)
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

    /// Adds values that were counted elsewhere.
    ///
    /// - Parameters:
    ///   - counts: the number of values in each range; the last is for values above all bounds.
    ///   - sum: the sum of the values.
    func add(counts: some Collection<UInt64>, sum: Double) {
        for (bucket, count) in zip(buckets, counts) where count > 0 { bucket.increment(by: Int64(clamping: count)) }
        sumSeries.increment(by: sum)
    }

    /// The number of values in each range; the last is for values above all bounds.
    var counts: [Int64] { buckets.map(\.value) }
    var sum: Double { sumSeries.value }
}
