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
    }

    private struct Line: Sendable {
        var items: Deque<Waiting> = []
        var bytes = 0
    }

    private var lines: [CommitSource: Line] = [:]
    /// The sources with waiting items, in turn.
    private var turns: Deque<CommitSource> = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The waiting items of one source.
    func waiting(of source: CommitSource) -> (count: Int, bytes: Int) {
        lines[source].map { ($0.items.count, $0.bytes) } ?? (0, 0)
    }

    /// - Parameters:
    ///   - bytes: its memory.
    ///   - cost: its part of what is taken at once, in bytes; nil: its memory.
    ///   - endsTurn: whether nothing of its source is taken together with it and behind it.
    mutating func append(
        _ item: Item,
        bytes: Int,
        cost: Int? = nil,
        endsTurn: Bool = false,
        of source: CommitSource
    ) {
        if lines[source] == nil { turns.append(source) }
        let waiting = Waiting(item: item, bytes: bytes, cost: cost ?? bytes, endsTurn: endsTurn)
        lines[source, default: Line()].items.append(waiting)
        lines[source]?.bytes += bytes
        count += 1
    }

    /// Puts an item that ended its source's turn before all others of its source: it is not done. The other sources come
    /// first.
    mutating func putBack(_ item: Item, bytes: Int, cost: Int, of source: CommitSource) {
        if lines[source] == nil { turns.append(source) }
        let waiting = Waiting(item: item, bytes: bytes, cost: cost, endsTurn: true)
        lines[source, default: Line()].items.prepend(waiting)
        lines[source]?.bytes += bytes
        count += 1
    }

    /// Smaller items do not count for ``take(maxCount:maxBytes:)``'s part of one source.
    private static var leastCounted: Int { 4_096 }

    /// Removes one item of each source in turn, until the limit of items or bytes is reached; at least one. Items of
    /// one source keep their order.
    ///
    /// While several sources wait, each gets a 16th of the bytes, or one item: all of them wait for what one takes.
    mutating func take(maxCount: Int, maxBytes: Int) -> [Item] {
        var taken: [Item] = []
        taken.reserveCapacity(min(count, maxCount))
        var bytes = 0
        let isContended = turns.count > 1
        var parts: [CommitSource: Int] = [:]
        var postponed: [CommitSource] = []
        defer { turns.append(contentsOf: postponed) }
        while taken.count < maxCount, bytes < maxBytes || taken.isEmpty, let source = turns.popFirst() {
            if isContended, let first = lines[source]?.items.first, first.cost >= Self.leastCounted {
                let part = parts[source, default: 0]
                guard part == 0 || part + first.cost <= maxBytes / 16 else {
                    postponed.append(source)
                    continue
                }
                parts[source] = part + first.cost
            }
            guard let next = lines[source]?.items.popFirst() else { continue }
            taken.append(next.item)
            bytes += next.cost
            count -= 1
            lines[source]?.bytes -= next.bytes
            if lines[source]?.items.isEmpty ?? true {
                lines[source] = nil
            } else if next.endsTurn {
                postponed.append(source)
            } else {
                turns.append(source)
            }
        }
        return taken
    }
}
