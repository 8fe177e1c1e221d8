// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The entries of one inbox by source, for all sources of the inbox.
struct InboxShares: Equatable {
    /// The entries by the stored form of their source (``EntrySource/number``).
    private var sources: [Int64: Holding] = [:]
    /// The entries of all members of a group together, by the group's number.
    private var groups: [Int64: Holding] = [:]

    /// A measure of the used memory: the room for rows in both tables, and a little for the tables themselves. The room
    /// for a row takes 32 bytes. It stays when the row is removed.
    var size: Int { sources.capacity + groups.capacity + 8 }

    subscript(source: EntrySource) -> Holding {
        if case .group(let group, by: nil) = source { return groups[Int64(group.rawValue)] ?? Holding() }
        return sources[source.number] ?? Holding()
    }

    /// Counts one more entry.
    ///
    /// - Parameter source: the stored form of its source.
    mutating func add(_ weight: Int, from source: Int64) {
        sources[source, default: Holding()].add(weight)
        if let group = Self.group(of: source) { groups[group, default: Holding()].add(weight) }
    }

    /// Removes entries of one source from the counts.
    ///
    /// - Parameter source: the stored form of the source.
    mutating func remove(_ removed: Holding, from source: Int64) {
        Self.remove(removed, of: source, from: &sources)
        if let group = Self.group(of: source) { Self.remove(removed, of: group, from: &groups) }
    }

    private static func remove(_ removed: Holding, of key: Int64, from table: inout [Int64: Holding]) {
        guard let index = table.index(forKey: key) else { return }
        table.values[index] += -removed
        if table.values[index].entries <= 0 { table.remove(at: index) }
    }

    /// The number of the group that a source belongs to; nil if it belongs to none. The source is in its present form
    /// (``EntrySource/numbers``) or in the form of older versions, which stored a group's messages without the
    /// member, as the negative number of the group.
    private static func group(of source: Int64) -> Int64? {
        guard source < 0 else { return nil }
        let number = source.magnitude >> 32
        return Int64(number == 0 ? source.magnitude : number)
    }
}
