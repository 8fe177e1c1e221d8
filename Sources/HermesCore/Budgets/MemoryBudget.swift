// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The bytes that wait in memory for clients, of all connections together: what is queued to them, what they have not
/// acknowledged, the beginnings of their frames, and their requests in progress.
///
/// Event loops sum up what their connections hold as plain numbers and report in steps, so that no delivery pays for it.
/// What several connections share counts for each of them: the budget is never too generous.
///
/// State: a few atomics; the sum is exact but for what the loops have not reported yet.
package final class MemoryBudget: Sendable {
    /// The most that may be held.
    package let limit: Int
    private let held = Atomic(0)
    private let isReclaiming = Atomic(false)
    private let reclaimed = Atomic(0)

    /// - Parameter limit: in bytes; without one there is no bound.
    package init(limit: Int = .max) { self.limit = max(1, limit) }

    /// What is held now, as far as it was reported, in bytes.
    package var used: Int { max(0, held.load(ordering: .relaxed)) }

    /// What was taken from those who held the most, since the start, in bytes.
    package var reclaimedBytes: Int { reclaimed.load(ordering: .relaxed) }

    /// How much has to go so that some room is left: then not every further byte starts it all again.
    package var excess: Int { max(0, used - (limit - limit / 8)) }

    /// Reports a change.
    ///
    /// - Returns: whether the limit is exceeded, and the caller has to see to it that memory is given back; then
    ///   ``reclaimEnded()`` has to follow. Only one caller at a time is told so.
    package func change(by bytes: Int) -> Bool {
        guard held.add(bytes, ordering: .relaxed).newValue > limit else { return false }
        return !isReclaiming.exchange(true, ordering: .acquiringAndReleasing)
    }

    /// Those who held the most have given it back, or are told to.
    package func reclaimEnded() { isReclaiming.store(false, ordering: .releasing) }

    /// Somebody has given so many bytes back because it had to.
    package func gaveBack(_ bytes: Int) { reclaimed.add(bytes, ordering: .relaxed) }
}

/// Who pays when too much memory is held.
package enum MemoryReclaim {
    /// Chooses what has to be given back, so that those who hold the most pay first, and nobody pays who holds less than
    /// what is left to those.
    ///
    /// Consumers are cut to one level, as high as possible; each gives up its largest holdings until it is not above it.
    ///
    /// - Parameters:
    ///   - holdings: who holds how many bytes; one consumer may have any number of them.
    ///   - bytes: how much has to be given back.
    /// - Returns: indices of `holdings`.
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

    /// The highest level such that what lies above it is enough.
    private static func level(of totals: [Int], toFree bytes: Int) -> Int {
        let sorted = totals.sorted(by: >)
        var above = 0
        for (index, total) in sorted.enumerated() {
            above += total
            let count = index + 1
            let next = count < sorted.count ? sorted[count] : 0
            // With the level at `next`, those above it give `above - count * next`.
            if above - count * next >= bytes { return max(0, (above - bytes) / count) }
        }
        return 0
    }
}
