// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The shape of a filter: the positions of its wildcards. The shape determines the cost of the filter when topics are
/// matched. One pass over the filter's bytes finds the shape.
package struct TopicShape: Hashable, Sendable {
    /// The number of records that the filter has in the tree of each loop: one for each level, or none if the filter
    /// has no wildcards.
    package let levels: Int
    /// A hash of the levels of the filter's wildcards. It uses the process's seed, so that nobody can find two
    /// different shapes whose hashes are equal.
    ///
    /// It is nil for a filter without wildcards. It is also nil for a shared subscription, because a shared
    /// subscription causes a separate delivery.
    fileprivate let wildcards: Int?
    /// A hash like ``wildcards`` that includes the filter's depth, for ``ShapeBudget``. A shared subscription also has
    /// this hash. It is nil if the filter is not costly.
    let costly: Int?
    /// The number of levels that a search for a costly shape follows.
    let depth: Int

    /// A filter is costly if it has more than ``freePluses`` levels that are `+`. A filter with a `+` is also costly if
    /// it has more than ``freeLevels`` levels. At most about 1,000 shapes that are not costly can match a topic.
    private static let freePluses = 2
    private static let freeLevels = 16

    /// - Parameter filter: the text of a subscription. The text of a shared subscription includes its group.
    package init(of filter: String) {
        guard SharedFilter.isShared(filter) else {
            self.init(scanning: filter.utf8)
            return
        }
        let named = filter.utf8.dropFirst(SharedFilter.prefix.utf8.count)
        let text = named.firstIndex(of: UInt8(ascii: "/")).map { named[named.index(after: $0)...] }
        self = Self(scanning: text ?? named[named.endIndex...]).shared
    }

    /// - Parameter filter: the filter that topics are compared with. It has no group.
    package init(of filter: TopicFilter) { self.init(scanning: filter.rawValue.utf8) }

    private init(scanning text: some Sequence<UInt8>) {
        var scan = Scan()
        for byte in text {
            switch byte {
            case UInt8(ascii: "/"): scan.addLevel()
            case UInt8(ascii: "+"), UInt8(ascii: "#"): scan.addWildcard(byte)
            default: break
            }
        }
        self.init(scan)
    }

    init(_ scan: Scan) {
        levels = scan.hasWildcard ? scan.levels : 0
        wildcards = scan.hasWildcard ? scan.hasher.finalize() : nil
        depth = levels
        let isCostly = scan.pluses > Self.freePluses || scan.pluses > 0 && scan.levels > Self.freeLevels
        if isCostly {
            var hasher = scan.hasher
            hasher.combine(scan.levels)
            costly = hasher.finalize()
        } else {
            costly = nil
        }
    }

    private init(levels: Int, costly: Int?, depth: Int) {
        self.levels = levels
        self.costly = costly
        self.depth = depth
        wildcards = nil
    }

    /// The shape of `$share/<group>/<filter>` for a filter with this shape.
    package var shared: Self { Self(levels: levels > 0 ? levels + 2 : 0, costly: costly, depth: depth) }

    /// Whether the shape counts in a ``ShapeBudget``.
    package var isCostly: Bool { costly != nil }

    /// The findings in the part of a filter that was examined so far.
    struct Scan {
        private(set) var levels = 1
        private(set) var hasWildcard = false
        private(set) var pluses = 0
        fileprivate var hasher = Hasher()

        mutating func addLevel() { levels &+= 1 }

        mutating func addWildcard(_ byte: UInt8) {
            hasher.combine(levels)
            hasher.combine(byte)
            hasWildcard = true
            if byte == UInt8(ascii: "+") { pluses &+= 1 }
        }
    }
}

/// The shapes of a subscriber's filters, and the number of filters with each shape. This type does no I/O.
///
/// A shape is the set of positions of the wildcards. At most one filter of a shape matches a given topic. So the number
/// of shapes bounds the number of a subscriber's filters that a publication can match. Without this bound, a topic with
/// 13 levels, all of them `a`, could match 8,192 filters with the levels `a` and `+`.
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

    /// Counts a filter that already exists, even if there are too many shapes.
    package mutating func add(_ shape: TopicShape) { _ = take(shape, limit: .max) }

    package mutating func giveBack(_ shape: TopicShape) {
        guard let wildcards = shape.wildcards, let count = counts[wildcards] else { return }
        counts[wildcards] = count > 1 ? count - 1 : nil
    }
}
