// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// A queue with one line of waiting items for each source; the lines take turns. An item may need several turns. Does
/// no I/O.
struct FairQueue<Item: Sendable>: Sendable {
    private struct Waiting: Sendable {
        let item: Item
        let bytes: Int
        let cost: Int
        let endsTurn: Bool
        /// Whether the source had nothing else under way when the item was added.
        let isQuiet: Bool
    }

    private struct Line: Sendable {
        var items: Deque<Waiting> = []
        var bytes = 0
        /// Whether the line must wait for the next batch.
        var isPostponed = false
    }

    /// The items that are taken together.
    private struct Batch: Sendable {
        var count = 0
        var bytes = 0
        /// Whether several sources have waited at once.
        var isContended = false
        var parts: [CommitSource: Int] = [:]
        /// The sources that have no further turn in this batch.
        var postponed: [CommitSource] = []
        /// The sources whose lines have become empty during this batch.
        var emptied: [CommitSource] = []
        var hasQuiet = false
    }

    private var lines: [CommitSource: Line] = [:]
    /// The sources with waiting items, in the order of their turns.
    private var turns: Deque<CommitSource> = []
    private(set) var count = 0
    private var batch = Batch()
    private var quietCount = 0

    var isEmpty: Bool { count == 0 }

    /// The waiting items of one source.
    func waiting(of source: CommitSource) -> (count: Int, bytes: Int) {
        lines[source].map { ($0.items.count, $0.bytes) } ?? (0, 0)
    }

    /// - Parameters:
    ///   - bytes: the memory of the item, in bytes.
    ///   - cost: the part of a batch that the item uses, in bytes; nil if this part equals the item's memory.
    ///   - endsTurn: whether later items of the same source must wait for the next batch.
    mutating func append(
        _ item: Item,
        bytes: Int,
        cost: Int? = nil,
        endsTurn: Bool = false,
        of source: CommitSource
    ) {
        let isQuiet = lines[source] == nil
        if isQuiet { quietCount += 1 }
        makeTurn(of: source)
        let waiting = Waiting(item: item, bytes: bytes, cost: cost ?? bytes, endsTurn: endsTurn, isQuiet: isQuiet)
        lines[source, default: Line()].items.append(waiting)
        lines[source]?.bytes += bytes
        count += 1
    }

    /// Puts an unfinished item back, before all other items of its source. The item has ended its source's turn, so the
    /// other sources have their turns first.
    mutating func putBack(_ item: Item, bytes: Int, cost: Int, of source: CommitSource) {
        makeTurn(of: source)
        let waiting = Waiting(item: item, bytes: bytes, cost: cost, endsTurn: true, isQuiet: false)
        lines[source, default: Line()].items.prepend(waiting)
        lines[source]?.bytes += bytes
        count += 1
    }

    private mutating func makeTurn(of source: CommitSource) {
        guard let line = lines[source] else { return turns.append(source) }
        if line.items.isEmpty, !line.isPostponed { turns.append(source) }
    }

    /// The smallest cost of an item, in bytes, that counts towards its source's share of a batch
    /// (``next(maxCount:maxBytes:if:)``).
    private static var leastCounted: Int { 4_096 }

    /// Moves the next item into the batch; the sources take turns, one item at a time. Returns nil if the batch has
    /// reached its limit of items or bytes, or if no source has a further turn in the batch. The first item of a batch
    /// may be larger than the limit of bytes. Items of one source keep their order.
    ///
    /// After several sources have waited at once, each source gets at most a sixteenth of the batch's bytes, or one
    /// item. The reason is that all sources wait for the end of the whole batch. Items of less than ``leastCounted``
    /// bytes do not count.
    ///
    /// - Parameter isDue: returns false if the item must wait for the next batch. The item's source then has no further
    ///   turn in this batch.
    mutating func next(maxCount: Int, maxBytes: Int, if isDue: (Item) -> Bool = { _ in true }) -> Item? {
        guard batch.count < maxCount, batch.bytes < maxBytes || batch.count == 0 else { return nil }
        if turns.count > 1 { batch.isContended = true }
        while let source = turns.popFirst() {
            guard let first = lines[source]?.items.first else { continue }
            if first.cost >= Self.leastCounted {
                let part = batch.parts[source, default: 0]
                guard !batch.isContended || part == 0 || part + first.cost <= maxBytes / 16 else {
                    postpone(source)
                    continue
                }
            }
            guard isDue(first.item) else {
                postpone(source)
                continue
            }
            take(first, of: source)
            return first.item
        }
        return nil
    }

    private mutating func take(_ first: Waiting, of source: CommitSource) {
        guard let index = lines.index(forKey: source) else { return }
        lines.values[index].items.removeFirst()
        lines.values[index].bytes -= first.bytes
        count -= 1
        batch.count += 1
        batch.bytes += first.cost
        if first.cost >= Self.leastCounted { batch.parts[source, default: 0] += first.cost }
        if first.isQuiet {
            quietCount -= 1
            batch.hasQuiet = true
        }
        if first.endsTurn {
            // The source is postponed even if it has no further waiting items. Later items of the source go into the
            // next batch, because this item may have parts left.
            postpone(source)
        } else if lines.values[index].items.isEmpty {
            batch.emptied.append(source)
        } else {
            turns.append(source)
        }
    }

    private mutating func postpone(_ source: CommitSource) {
        lines[source]?.isPostponed = true
        batch.postponed.append(source)
    }

    /// Whether a source benefits if the batch ends now. Such a source had nothing else under way when its item was
    /// added, and this item is in the batch or waits. The result is false if the waiting sources outnumber the items of
    /// the batch, because a longer batch is then better for all.
    var isBatchAwaited: Bool { (batch.hasQuiet || quietCount > 0) && turns.count <= batch.count }

    /// Removes the next item, in a batch of its own.
    mutating func takeOne() -> Item? {
        defer { endBatch() }
        return next(maxCount: 1, maxBytes: .max)
    }

    /// Ends the batch, and begins the next batch.
    mutating func endBatch() {
        // An empty line was kept until now, because its source had an item under way in this batch.
        for source in batch.emptied where lines[source]?.items.isEmpty ?? false { lines[source] = nil }
        for source in batch.postponed {
            guard let line = lines[source] else { continue }
            if line.items.isEmpty {
                lines[source] = nil
            } else {
                lines[source]?.isPostponed = false
                turns.append(source)
            }
        }
        batch = Batch()
    }
}
