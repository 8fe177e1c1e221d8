// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Waiting items in one line for each source; the lines take turns. Pure.
struct FairQueue<Item: Sendable>: Sendable {
    private struct Line: Sendable {
        var items: Deque<(item: Item, bytes: Int)> = []
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

    mutating func append(_ item: Item, bytes: Int, of source: CommitSource) {
        if lines[source] == nil { turns.append(source) }
        lines[source, default: Line()].items.append((item, bytes))
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
            if isContended, let first = lines[source]?.items.first, first.bytes >= Self.leastCounted {
                let part = parts[source, default: 0]
                guard part == 0 || part + first.bytes <= maxBytes / 16 else {
                    postponed.append(source)
                    continue
                }
                parts[source] = part + first.bytes
            }
            guard let next = lines[source]?.items.popFirst() else { continue }
            taken.append(next.item)
            bytes += next.bytes
            count -= 1
            lines[source]?.bytes -= next.bytes
            if lines[source]?.items.isEmpty ?? true { lines[source] = nil } else { turns.append(source) }
        }
        return taken
    }
}
