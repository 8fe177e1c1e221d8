// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The shapes of a subscriber's filters, and how many filters have each. Pure.
///
/// A shape is where the wildcards are. Of the filters of one shape at most one matches a topic, so that the number of shapes
/// bounds how many filters of a subscriber a publication can match: without it, 13 levels of `a` or `+` make 8,192.
package struct TopicShapes: Sendable {
    private var counts: [Int: Int] = [:]

    package init() {}

    package var count: Int { counts.count }

    /// Counts a filter, unless it has a shape of its own and there are `limit` others.
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

    /// Hashed with the process's seed: nobody finds two shapes that are equal here.
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
