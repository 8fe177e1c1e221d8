// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Waiting items in one line for each source; the lines take turns. An item may take several turns. Pure.
struct FairQueue<Item: Sendable>: Sendable {
    private struct Waiting: Sendable {
        let item: Item
        let bytes: Int
        let cost: Int
        let endsTurn: Bool
        /// Its source had nothing else to wait for.
        let isQuiet: Bool
    }

    private struct Line: Sendable {
        var items: Deque<Waiting> = []
        var bytes = 0
        /// It has no turn before the next batch.
        var isPostponed = false
    }

    /// What is taken together.
    private struct Batch: Sendable {
        var count = 0
        var bytes = 0
        /// Several sources have waited at once.
        var isContended = false
        var parts: [CommitSource: Int] = [:]
        /// Those that have no turn in it any more.
        var postponed: [CommitSource] = []
        /// Those whose lines were empty at a time.
        var emptied: [CommitSource] = []
        var hasQuiet = false
    }

    private var lines: [CommitSource: Line] = [:]
    /// The sources with waiting items, in turn.
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
    ///   - bytes: its memory.
    ///   - cost: its part of a batch, in bytes; nil: its memory.
    ///   - endsTurn: whether no later item of the same source may be in the same batch.
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

    /// Puts an unfinished item, which ended its source's turn, before all other items of its source. The other sources
    /// have their turns first.
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

    /// Smaller items do not count for ``next(maxCount:maxBytes:)``'s part of one source.
    private static var leastCounted: Int { 4_096 }

    /// Moves the next item into the batch, one of each source in turn; nil: the batch has reached its limit of items or
    /// bytes, or nothing waits. A batch holds one item at least. Items of one source keep their order.
    ///
    /// While several sources wait, each gets a 16th of the bytes, or one item: all of them wait for what one takes.
    ///
    /// - Parameter isDue: false: the item, and its source, have no turn before the next batch.
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
            // Also if nothing waits behind it: what comes is for the next batch, because it may not be done then.
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

    /// Whether somebody waits who would profit from a batch that ends now: a source that has nothing else under way, in
    /// the batch or behind it, and whose turn comes soon. Where more sources wait than the batch holds items, a longer
    /// one is better for all.
    var isBatchAwaited: Bool { (batch.hasQuiet || quietCount > 0) && turns.count <= batch.count }

    /// Removes the next item, as a batch of its own.
    mutating func takeOne() -> Item? {
        defer { endBatch() }
        return next(maxCount: 1, maxBytes: .max)
    }

    /// The batch is done; the next one begins.
    mutating func endBatch() {
        // A source with an empty line had something under way until now.
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
