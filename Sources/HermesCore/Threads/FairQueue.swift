// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// On whose behalf something is to be stored: an account, or the address of an anonymous client. What one has waiting
/// does not delay another's.
package struct CommitSource: Hashable, Sendable {
    /// The server itself, and whoever is not told apart.
    package static let server = CommitSource("")

    private let name: String

    package init(account: String) { name = "a" + account }

    /// - Parameter host: an address without port; nil: not known.
    package init(host: String?) { name = "h" + (host ?? "") }

    private init(_ name: String) { self.name = name }
}

/// What waits, one line for each source; the lines take turns. Pure.
struct FairQueue<Item: Sendable>: Sendable {
    private struct Line: Sendable {
        var items: Deque<(item: Item, bytes: Int)> = []
        var bytes = 0
    }

    private var lines: [CommitSource: Line] = [:]
    /// Those that have something, in turn.
    private var turns: Deque<CommitSource> = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// What one source has waiting.
    func waiting(of source: CommitSource) -> (count: Int, bytes: Int) {
        lines[source].map { ($0.items.count, $0.bytes) } ?? (0, 0)
    }

    mutating func append(_ item: Item, bytes: Int, of source: CommitSource) {
        if lines[source] == nil { turns.append(source) }
        lines[source, default: Line()].items.append((item, bytes))
        lines[source]?.bytes += bytes
        count += 1
    }

    /// Takes one item of each source in turn, until there are so many or they hold so much; one at least. Those of one
    /// source stay in their order.
    mutating func take(maxCount: Int, maxBytes: Int) -> [Item] {
        var taken: [Item] = []
        taken.reserveCapacity(min(count, maxCount))
        var bytes = 0
        while taken.count < maxCount, bytes < maxBytes || taken.isEmpty, let source = turns.popFirst() {
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
