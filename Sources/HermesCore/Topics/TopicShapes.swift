// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The shapes of a subscriber's filters, and how many filters have each. Pure.
///
/// A shape is the set of positions of the wildcards. At most one filter of a shape matches a given topic. So the number
/// of shapes bounds the number of a subscriber's filters that a publication can match. Without this bound, a topic of
/// 13 levels `a` could match 8,192 filters of `a` and `+`.
package struct TopicShapes: Sendable {
    private var counts: [Int: Int] = [:]

    package init() {}

    package var count: Int { counts.count }

    /// Counts a filter, unless its shape is new and there are already `limit` shapes.
    package mutating func take(_ filter: String, limit: Int) -> Bool {
        guard let shape = Self.shape(of: filter) else { return true }
        guard counts[shape] != nil || counts.count < limit else { return false }
        counts[shape, default: 0] += 1
        return true
    }

    /// Counts a filter that is there.
    package mutating func add(_ filter: String) { _ = take(filter, limit: .max) }

    package mutating func giveBack(_ filter: String) {
        guard let shape = Self.shape(of: filter), let count = counts[shape] else { return }
        counts[shape] = count > 1 ? count - 1 : nil
    }

    /// The records that a filter has in the tree of each loop: one for each level; none without wildcards.
    package static func levels(of filter: String) -> Int {
        var levels = 1
        var hasWildcard = false
        for byte in filter.utf8 {
            switch byte {
            case UInt8(ascii: "/"): levels &+= 1
            case UInt8(ascii: "+"), UInt8(ascii: "#"): hasWildcard = true
            default: break
            }
        }
        return hasWildcard ? levels : 0
    }

    /// The shape's hash, with the process's seed: nobody can construct two shapes with the same hash.
    ///
    /// - Returns: nil for a filter without wildcards, and for a shared subscription, which is a delivery of its own.
    private static func shape(of filter: String) -> Int? {
        guard !filter.utf8.starts(with: "$share/".utf8) else { return nil }
        var hasher = Hasher()
        var level = 0
        var hasWildcard = false
        for byte in filter.utf8 {
            switch byte {
            case UInt8(ascii: "/"): level &+= 1
            case UInt8(ascii: "+"), UInt8(ascii: "#"):
                hasher.combine(level)
                hasher.combine(byte)
                hasWildcard = true
            default: break
            }
        }
        return hasWildcard ? hasher.finalize() : nil
    }
}
