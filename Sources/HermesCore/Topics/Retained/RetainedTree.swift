// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An index that finds the topics that a filter matches: the converse of ``TopicTree``.
///
/// The index is a trie over the levels of the topics. All edges are in one hash table with the keys (node, level), for
/// filter levels without a wildcard. The children of a node also form a linked list, for wildcards. Nodes are records
/// in one array. Level texts are stored once and compared byte by byte.
struct RetainedTree {
    /// The owner's value for a topic: any number except `UInt32.max`.
    typealias Value = UInt32

    struct Node {
        var parent: UInt32
        var level: UInt32
        var firstChild: UInt32 = RetainedTree.none
        var next: UInt32 = RetainedTree.none
        var previous: UInt32 = RetainedTree.none
        var value: UInt32 = RetainedTree.none
        /// The number of the node. Each reuse of the record gets a new number. The numbers of a node's children
        /// decrease from the first child to the last.
        var number: UInt64
        /// Whether the level begins with `$`. Wildcards do not match such a level at the beginning of a topic
        /// [MQTT-4.7.2-1].
        var isReserved = false
    }

    /// A search that can continue after the tree has changed. After such a change, it does not always find added
    /// topics, and the found topics must be checked again.
    struct Walk: Sendable {
        let filter: TopicFilter
        /// A node that matches the filter's first `depth` levels, either alone or together with the siblings after it.
        fileprivate struct Place {
            let node: UInt32
            let depth: UInt32
            /// The parent of `node`, if the siblings after `node` are also examined; ``none`` if only `node` is
            /// examined.
            var parent = RetainedTree.none
            /// The number of `node`.
            var number: UInt64 = 0
            /// Siblings with this number or a higher number were already examined.
            var below = UInt64.max
        }

        fileprivate var stack = [Place(node: RetainedTree.root, depth: 0)]
        /// The ranges of the filter's levels in its bytes.
        fileprivate let levels: [Range<Int>]

        init(_ filter: TopicFilter) {
            self.filter = filter
            levels = filter.rawValue.withBytes { bytes in
                var levels: [Range<Int>] = []
                var start = 0
                for place in bytes.indices where bytes[place] == UInt8(ascii: "/") {
                    levels.append(start..<place)
                    start = place + 1
                }
                levels.append(start..<bytes.count)
                return levels
            }
        }

        var isAtEnd: Bool { stack.isEmpty }

        /// The memory of the search, in bytes.
        var bytes: Int { MemoryLayout<Place>.stride * stack.capacity }
    }

    private static let none = UInt32.max
    fileprivate static let root: UInt32 = 0

    private(set) var nodes = [Node(parent: none, level: none, number: 0)]
    private var lastNumber: UInt64 = 0
    private(set) var freeNodes: [UInt32] = []
    private(set) var edges: [UInt64: UInt32] = [:]
    private(set) var levels = LevelTexts()

    func value(of topic: TopicName) -> Value? {
        guard let node = find(topic) else { return nil }
        return nodes[Int(node)].value == Self.none ? nil : nodes[Int(node)].value
    }

    mutating func insert(_ topic: TopicName, value: Value) {
        let node = topic.rawValue.withBytes { bytes in
            var node = Self.root
            var reader = LevelReader(bytes)
            while let text = reader.next() { node = child(of: node, at: text) }
            return node
        }
        nodes[Int(node)].value = value
    }

    mutating func remove(_ topic: TopicName) {
        guard var node = find(topic) else { return }
        nodes[Int(node)].value = Self.none
        while node != Self.root, nodes[Int(node)].firstChild == Self.none, nodes[Int(node)].value == Self.none {
            let parent = nodes[Int(node)].parent
            unlink(node)
            node = parent
        }
    }

    /// Calls `visit` with the value of each matching topic until `visit` returns false.
    ///
    /// The time is proportional to the number of nodes that match the first levels of the filter. The search is not
    /// recursive, because topics can have many levels.
    func forEachMatch(of filter: TopicFilter, _ visit: (Value) -> Bool) {
        var walk = Walk(filter)
        var steps = Int.max
        forEachMatch(in: &walk, steps: &steps, visit)
    }

    /// Continues a search until `visit` returns false or no steps are left; each examined node is one step.
    func forEachMatch(in walk: inout Walk, steps: inout Int, _ visit: (Value) -> Bool) {
        let filter = walk.filter.rawValue
        let parts = walk.levels
        filter.withBytes { bytes in
            while steps > 0, let place = walk.stack.popLast() {
                steps -= 1
                let node = place.node
                // The tree may be smaller than before.
                guard Int(node) < nodes.count else { continue }
                if place.parent != Self.none {
                    guard goOn(from: place, &walk.stack) else { continue }
                }
                let depth = Int(place.depth)
                guard depth < parts.count else {
                    let value = nodes[Int(node)].value
                    if value != Self.none, !visit(value) { return }
                    continue
                }
                let part = parts[depth]
                if part.count == 1, bytes[part.lowerBound] == UInt8(ascii: "#") {
                    // "sport/#" also matches "sport" (4.7.1.2); the depth stays the same, because all nodes below
                    // match.
                    pushChildren(of: node, depth: place.depth, to: &walk.stack)
                    let value = nodes[Int(node)].value
                    if value != Self.none, !visit(value) { return }
                } else if part.count == 1, bytes[part.lowerBound] == UInt8(ascii: "+") {
                    pushChildren(of: node, depth: place.depth + 1, to: &walk.stack)
                } else {
                    let text = UnsafeBufferPointer(rebasing: bytes[part])
                    guard let level = levels.number(of: text), let child = edges[Self.edge(node, level)] else {
                        continue
                    }
                    walk.stack.append(Walk.Place(node: child, depth: place.depth + 1))
                }
            }
        }
    }

    /// Puts a node's first child on the stack. From it, the walk continues to the other children.
    private func pushChildren(of node: UInt32, depth: UInt32, to stack: inout [Walk.Place]) {
        push(nodes[Int(node)].firstChild, of: node, depth: depth, below: .max, to: &stack)
    }

    private func push(
        _ child: UInt32,
        of parent: UInt32,
        depth: UInt32,
        below: UInt64,
        to stack: inout [Walk.Place]
    ) {
        guard child != Self.none else { return }
        let number = nodes[Int(child)].number
        stack.append(Walk.Place(node: child, depth: depth, parent: parent, number: number, below: below))
    }

    /// Puts the next sibling on the stack.
    ///
    /// - Returns: whether the node must be examined.
    private func goOn(from place: Walk.Place, _ stack: inout [Walk.Place]) -> Bool {
        let record = nodes[Int(place.node)]
        guard record.number == place.number else {
            // The node has left the tree meanwhile. The siblings that came after it have lower numbers.
            guard Int(place.parent) < nodes.count else { return false }
            let (first, below) = (nodes[Int(place.parent)].firstChild, min(place.below, place.number))
            push(first, of: place.parent, depth: place.depth, below: below, to: &stack)
            return false
        }
        push(record.next, of: place.parent, depth: place.depth, below: place.below, to: &stack)
        return record.number < place.below && (place.parent != Self.root || !record.isReserved)
    }

    // MARK: Nodes

    private static func edge(_ node: UInt32, _ level: UInt32) -> UInt64 { UInt64(node) << 32 | UInt64(level) }

    private func find(_ topic: TopicName) -> UInt32? {
        topic.rawValue.withBytes { bytes in
            var node = Self.root
            var reader = LevelReader(bytes)
            while let text = reader.next() {
                guard let level = levels.number(of: text), let child = edges[Self.edge(node, level)] else { return nil }
                node = child
            }
            return node
        }
    }

    private mutating func child(of parent: UInt32, at text: UnsafeBufferPointer<UInt8>) -> UInt32 {
        if let level = levels.number(of: text), let child = edges[Self.edge(parent, level)] { return child }
        let level = levels.use(text)
        let first = nodes[Int(parent)].firstChild
        lastNumber &+= 1
        var node = Node(parent: parent, level: level, number: lastNumber)
        node.isReserved = text.first == UInt8(ascii: "$")
        node.next = first
        let child: UInt32
        if let free = freeNodes.popLast() {
            child = free
            nodes[Int(free)] = node
        } else {
            child = UInt32(nodes.count)
            nodes.append(node)
        }
        if first != Self.none { nodes[Int(first)].previous = child }
        nodes[Int(parent)].firstChild = child
        edges[Self.edge(parent, level)] = child
        return child
    }

    private mutating func unlink(_ node: UInt32) {
        let record = nodes[Int(node)]
        if record.previous == Self.none {
            nodes[Int(record.parent)].firstChild = record.next
        } else {
            nodes[Int(record.previous)].next = record.next
        }
        if record.next != Self.none { nodes[Int(record.next)].previous = record.previous }
        nodes[Int(node)].number = 0
        edges[Self.edge(record.parent, record.level)] = nil
        freeNodes.append(node)
        levels.release(record.level)
    }
}
