// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The cost of a filter for those who match topics, found in one walk over its bytes.
package struct TopicShape: Hashable, Sendable {
    /// The records that the filter has in the tree of each loop: one for each level; none without wildcards.
    package let levels: Int
    /// The levels of its wildcards, hashed with the process's seed: nobody finds two shapes that are equal here.
    ///
    /// Nil for a filter without wildcards, and for a shared subscription, which is a delivery of its own.
    fileprivate let wildcards: Int?

    /// - Parameter filter: the text of a subscription, with the group of a shared one.
    package init(of filter: String) {
        var scan = Scan()
        for byte in filter.utf8 {
            switch byte {
            case UInt8(ascii: "/"): scan.addLevel()
            case UInt8(ascii: "+"), UInt8(ascii: "#"): scan.addWildcard(byte)
            default: break
            }
        }
        let shape = Self(scan)
        self = filter.utf8.starts(with: "$share/".utf8) ? Self(levels: shape.levels, wildcards: nil) : shape
    }

    init(_ scan: Scan) {
        levels = scan.hasWildcard ? scan.levels : 0
        wildcards = scan.hasWildcard ? scan.hasher.finalize() : nil
    }

    private init(levels: Int, wildcards: Int?) {
        self.levels = levels
        self.wildcards = wildcards
    }

    /// The shape of `$share/<group>/<filter>` for a filter with this shape.
    package var shared: Self { Self(levels: levels > 0 ? levels + 2 : 0, wildcards: nil) }

    /// The part of a filter that was looked at so far.
    struct Scan {
        private(set) var levels = 1
        private(set) var hasWildcard = false
        fileprivate var hasher = Hasher()

        mutating func addLevel() { levels &+= 1 }

        mutating func addWildcard(_ byte: UInt8) {
            hasher.combine(levels)
            hasher.combine(byte)
            hasWildcard = true
        }
    }
}

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
    package mutating func take(_ shape: TopicShape, limit: Int) -> Bool {
        guard let wildcards = shape.wildcards else { return true }
        guard counts[wildcards] != nil || counts.count < limit else { return false }
        counts[wildcards, default: 0] += 1
        return true
    }

    /// Counts a filter that is there.
    package mutating func add(_ shape: TopicShape) { _ = take(shape, limit: .max) }

    package mutating func giveBack(_ shape: TopicShape) {
        guard let wildcards = shape.wildcards, let count = counts[wildcards] else { return }
        counts[wildcards] = count > 1 ? count - 1 : nil
    }
}
