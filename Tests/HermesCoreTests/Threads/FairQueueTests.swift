// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

extension FairQueue {
    /// Removes and returns a whole batch.
    fileprivate mutating func take(maxCount: Int, maxBytes: Int) -> [Item] {
        defer { endBatch() }
        var taken: [Item] = []
        while let item = next(maxCount: maxCount, maxBytes: maxBytes) { taken.append(item) }
        return taken
    }
}

@Suite struct FairQueueTests {
    private let flooder = CommitSource(host: "10.0.0.1")
    private let other = CommitSource.subject("ann")

    @Test func `sources take turns and keep their order`() {
        var queue = FairQueue<String>()
        for number in 0..<1000 { queue.append("f\(number)", bytes: 10, of: flooder) }
        for number in 0..<3 { queue.append("o\(number)", bytes: 10, of: other) }
        queue.append("s", bytes: 1, of: .server)
        #expect(queue.take(maxCount: 8, maxBytes: .max) == ["f0", "o0", "s", "f1", "o1", "f2", "o2", "f3"])
        #expect(queue.waiting(of: flooder).count == 996)
        #expect(queue.waiting(of: flooder).bytes == 9960)
        #expect(queue.waiting(of: other).count == 0)
        queue.append("o3", bytes: 10, of: other)
        #expect(queue.take(maxCount: 3, maxBytes: .max) == ["f4", "o3", "f5"])
        #expect(queue.count == 994)
        #expect(queue.take(maxCount: .max, maxBytes: .max) == (6..<1000).map { "f\($0)" })
        #expect(queue.isEmpty)
        #expect(queue.take(maxCount: 1, maxBytes: 1) == [])
    }

    @Test func `an item of many turns takes one at a time, and nothing of its source overtakes it`() {
        var queue = FairQueue<String>()
        queue.append("f0", bytes: 10, of: flooder)
        queue.append("long", bytes: 1_000, cost: 50, endsTurn: true, of: flooder)
        queue.append("f1", bytes: 10, of: flooder)
        for number in 0..<4 { queue.append("o\(number)", bytes: 10, of: other) }
        #expect(queue.take(maxCount: 9, maxBytes: 95) == ["f0", "o0", "long", "o1", "o2", "o3"])
        #expect(queue.waiting(of: flooder).bytes == 10)
        queue.append("o4", bytes: 10, of: other)
        queue.putBack("long", bytes: 1_000, cost: 50, of: flooder)
        #expect(queue.waiting(of: flooder).bytes == 1_010)
        #expect(queue.take(maxCount: 9, maxBytes: .max).sorted() == ["long", "o4"])
        #expect(queue.take(maxCount: 9, maxBytes: .max) == ["f1"])
        // If nothing else waits, the long item is taken at once, and is alone in its batch.
        queue.putBack("long", bytes: 1_000, cost: 50, of: flooder)
        #expect(queue.take(maxCount: 9, maxBytes: .max) == ["long"])
        #expect(queue.isEmpty)
    }

    @Test func `a batch is bounded by bytes and holds one at least`() {
        var queue = FairQueue<Int>()
        for number in 0..<5 { queue.append(number, bytes: 100, of: flooder) }
        #expect(queue.take(maxCount: 9, maxBytes: 1) == [0])
        #expect(queue.take(maxCount: 9, maxBytes: 200) == [1, 2])
    }

    @Test func `who waits with others has a part of the bytes, alone all of them, in the order of its items`() {
        var queue = FairQueue<Int>()
        let (flood, other) = (CommitSource(host: "10.0.0.1"), CommitSource(host: "10.0.0.2"))
        for number in 0..<40 { queue.append(number, bytes: 100_000, of: flood) }
        #expect(queue.take(maxCount: 1_000, maxBytes: 1 << 20) == Array(0..<11))
        for number in 100..<103 { queue.append(number, bytes: 500, of: other) }
        // A 16th of 1.6 MB is the size of one item of the flood.
        #expect(queue.take(maxCount: 1_000, maxBytes: 1_600_000).sorted() == [11, 100, 101, 102])
        queue.append(103, bytes: 500, of: other)
        // An item that is larger than the part of its source still has its turn.
        #expect(queue.take(maxCount: 1_000, maxBytes: 160_000).sorted() == [12, 103])
        #expect(queue.take(maxCount: 1_000, maxBytes: .max) == Array(13..<40))
        #expect(queue.isEmpty)
    }

    @Test func `what comes to a batch that is being taken has its turn in it`() {
        var queue = FairQueue<String>()
        for number in 0..<10 { queue.append("f\(number)", bytes: 10, of: flooder) }
        #expect(queue.next(maxCount: 9, maxBytes: .max) == "f0")
        queue.append("o", bytes: 10, of: other)
        #expect(queue.take(maxCount: 4, maxBytes: .max) == ["f1", "o", "f2"])
        #expect(queue.take(maxCount: .max, maxBytes: .max) == (3..<10).map { "f\($0)" })
    }

    @Test func `nothing overtakes an item of many turns, also if it came while the item was in a batch`() {
        var queue = FairQueue<String>()
        queue.append("long", bytes: 1_000, cost: 50, endsTurn: true, of: flooder)
        #expect(queue.next(maxCount: 9, maxBytes: .max) == "long")
        queue.append("f1", bytes: 10, of: flooder)
        queue.append("o", bytes: 10, of: other)
        #expect(queue.next(maxCount: 9, maxBytes: .max) == "o")
        #expect(queue.next(maxCount: 9, maxBytes: .max) == nil)
        queue.putBack("long", bytes: 1_000, cost: 50, of: flooder)
        queue.endBatch()
        #expect(queue.take(maxCount: 9, maxBytes: .max) == ["long"])
        #expect(queue.take(maxCount: 9, maxBytes: .max) == ["f1"])
        #expect(queue.isEmpty)
    }

    @Test func `an item that is not due lets other sources have their turns, and keeps the order of its own`() {
        var queue = FairQueue<String>()
        for number in 0..<3 { queue.append("f\(number)", bytes: 10, of: flooder) }
        for number in 0..<4 { queue.append("o\(number)", bytes: 10, of: other) }
        var taken: [String] = []
        while let item = queue.next(maxCount: 9, maxBytes: .max, if: { $0 != "f1" }) { taken.append(item) }
        #expect(taken == ["f0", "o0", "o1", "o2", "o3"])
        queue.endBatch()
        #expect(queue.take(maxCount: 9, maxBytes: .max) == ["f1", "f2"])
    }

    @Test func `a batch is awaited by whoever has nothing else under way, if its turn comes soon`() {
        var queue = FairQueue<String>()
        for number in 0..<9 { queue.append("f\(number)", bytes: 10, of: flooder) }
        // The flooder had nothing under way when it added its first item.
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "f0" && queue.isBatchAwaited)
        queue.endBatch()
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "f1" && !queue.isBatchAwaited)
        queue.append("o0", bytes: 10, of: other)
        queue.append("o1", bytes: 10, of: other)
        // Two sources wait, and only one item is in the batch.
        #expect(!queue.isBatchAwaited)
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "f2" && queue.isBatchAwaited)
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "o0" && queue.isBatchAwaited)
        queue.endBatch()
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "f3")
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "o1" && !queue.isBatchAwaited)
        // This source already has an item in the batch.
        queue.append("o2", bytes: 10, of: other)
        #expect(!queue.isBatchAwaited)
        queue.endBatch()
        queue.append("s", bytes: 10, of: .server)
        #expect(queue.next(maxCount: 99, maxBytes: .max) == "f4" && !queue.isBatchAwaited)
    }
}
