// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The memory that is held for the clients of all connections: output queues, unacknowledged messages, incomplete
/// frames, and requests in progress.
///
/// Event loops sum up plain numbers and report them in steps, so that reporting adds nothing to the cost of a delivery.
/// Memory that several connections share counts at least once, so the budget does not underestimate this memory. A
/// waiting frame counts for each of its connections. A large frame that is being written counts once on each loop, even
/// if several connections of the loop share the frame (`SharedFrames`).
///
/// State: a few atomics. The sum contains all memory that the loops have reported.
package final class MemoryBudget: Sendable {
    /// The limit, in bytes.
    package let limit: Int
    private let held = Atomic(0)
    private let isReclaiming = Atomic(false)
    private let reclaimed = Atomic(0)

    /// - Parameter limit: the limit, in bytes. By default, there is no limit.
    package init(limit: Int = .max) { self.limit = max(1, limit) }

    /// The reported memory, in bytes.
    package var used: Int { max(0, held.load(ordering: .relaxed)) }

    /// The memory that was taken back from the largest consumers since the start, in bytes.
    package var reclaimedBytes: Int { reclaimed.load(ordering: .relaxed) }

    /// The number of bytes to free. One eighth of the limit becomes free, so that the next byte does not exceed the
    /// limit again.
    package var excess: Int { max(0, used - (limit - limit / 8)) }

    /// Reports a change of the held memory.
    ///
    /// - Returns: true if the limit is exceeded. The caller must then free memory and call ``reclaimEnded()``. Only one
    ///   caller at a time gets true.
    package func change(by bytes: Int) -> Bool {
        guard held.add(bytes, ordering: .relaxed).newValue > limit else { return false }
        return !isReclaiming.exchange(true, ordering: .acquiringAndReleasing)
    }

    /// Allows the next reclaim. Call this after the largest consumers have freed memory or were told to free it.
    package func reclaimEnded() { isReclaiming.store(false, ordering: .releasing) }

    /// Counts bytes that a consumer has freed because it was told to do so.
    package func gaveBack(_ bytes: Int) { reclaimed.add(bytes, ordering: .relaxed) }
}

/// Decides which consumers must free memory when too much memory is held.
package enum MemoryReclaim {
    /// Chooses the holdings to free, so that the largest consumers are the first to free memory.
    ///
    /// All consumers have the same limit, called the level. The level is the highest limit above which there are enough
    /// bytes to free. A consumer above the level frees its largest holdings until it is no longer above the level.
    /// Other consumers free nothing.
    ///
    /// - Parameters:
    ///   - holdings: the bytes of each holding and its consumer; a consumer may have any number of holdings.
    ///   - bytes: the number of bytes to free.
    /// - Returns: the indices of the `holdings` to free.
    package static func victims<Consumer: Hashable>(
        of holdings: [(consumer: Consumer, bytes: Int)],
        toFree bytes: Int
    ) -> [Int] {
        guard bytes > 0 else { return [] }
        var own: [Consumer: (total: Int, indices: [Int])] = [:]
        for (index, holding) in holdings.enumerated() where holding.bytes > 0 {
            own[holding.consumer, default: (0, [])].total += holding.bytes
            own[holding.consumer]?.indices.append(index)
        }
        let level = level(of: own.values.map(\.total), toFree: bytes)
        var victims: [Int] = []
        for consumer in own.values where consumer.total > level {
            var total = consumer.total
            for index in consumer.indices.sorted(by: { holdings[$0].bytes > holdings[$1].bytes }) {
                guard total > level else { break }
                total -= holdings[index].bytes
                victims.append(index)
            }
        }
        return victims
    }

    /// Returns the highest level above which there are enough bytes to free.
    private static func level(of totals: [Int], toFree bytes: Int) -> Int {
        let sorted = totals.sorted(by: >)
        var above = 0
        for (index, total) in sorted.enumerated() {
            above += total
            let count = index + 1
            let next = count < sorted.count ? sorted[count] : 0
            // With the level at `next`, the consumers above the level free `above - count * next` bytes.
            if above - count * next >= bytes { return max(0, (above - bytes) / count) }
        }
        return 0
    }
}
