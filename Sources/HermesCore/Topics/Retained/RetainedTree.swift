// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Finds the topics that a filter matches: the converse of ``TopicTree``.
///
/// A trie over the levels of the topics. Edges to known levels are in one hash table keyed by (node, level); the
/// children of a node also form a linked list, for wildcards. Nodes are records in one array. Level texts are stored
/// once and compared byte by byte.
struct RetainedTree {
    /// The owner's value for a topic; anything but `UInt32.max`.
    typealias Value = UInt32

    private struct Node {
        var parent: UInt32
        var level: UInt32
        var firstChild: UInt32 = RetainedTree.none
        var next: UInt32 = RetainedTree.none
        var previous: UInt32 = RetainedTree.none
        var value: UInt32 = RetainedTree.none
        /// Whether its level begins a topic of the server: wildcards do not match it [MQTT-4.7.2-1].
        var isReserved = false
    }

    /// A search that can continue after the tree has changed. It may then miss added topics, and the topics that it
    /// finds must be checked again.
    struct Walk: Sendable {
        let filter: TopicFilter
        /// Nodes that match the filter's first `depth` levels.
        fileprivate var stack: [(node: UInt32, depth: UInt32)] = [(RetainedTree.root, 0)]
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

        /// Its memory, in bytes.
        var bytes: Int { MemoryLayout<(UInt32, UInt32)>.stride * stack.capacity }
    }

    private static let none = UInt32.max
    fileprivate static let root: UInt32 = 0

    private var nodes = [Node(parent: none, level: none)]
    private var freeNodes: [UInt32] = []
    private var edges: [UInt64: UInt32] = [:]
    private var levels = LevelTexts()

    /// The number of records in use; for tests.
    var footprint: Int { nodes.count - freeNodes.count + edges.count + levels.count }

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

    /// Calls `visit` with the value of each matching topic until it returns false.
    ///
    /// The time is proportional to the topics that match a beginning of the filter. Not recursive, because topics can
    /// be deep.
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
            while steps > 0, let (node, place) = walk.stack.popLast() {
                steps -= 1
                // The tree may be smaller than it was.
                guard Int(node) < nodes.count else { continue }
                let depth = Int(place)
                guard depth < parts.count else {
                    let value = nodes[Int(node)].value
                    if value != Self.none, !visit(value) { return }
                    continue
                }
                let part = parts[depth]
                if part.count == 1, bytes[part.lowerBound] == UInt8(ascii: "#") {
                    // "sport/#" also matches "sport" (4.7.1.2); the depth stays: all below match.
                    pushChildren(of: node, depth: place, to: &walk.stack)
                    let value = nodes[Int(node)].value
                    if value != Self.none, !visit(value) { return }
                } else if part.count == 1, bytes[part.lowerBound] == UInt8(ascii: "+") {
                    pushChildren(of: node, depth: place + 1, to: &walk.stack)
                } else {
                    let text = UnsafeBufferPointer(rebasing: bytes[part])
                    guard let level = levels.number(of: text), let child = edges[Self.edge(node, level)] else {
                        continue
                    }
                    walk.stack.append((child, place + 1))
                }
            }
        }
    }

    private func pushChildren(of node: UInt32, depth: UInt32, to stack: inout [(node: UInt32, depth: UInt32)]) {
        var child = nodes[Int(node)].firstChild
        while child != Self.none {
            let record = nodes[Int(child)]
            if node != Self.root || !record.isReserved { stack.append((child, depth)) }
            child = record.next
        }
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
        var node = Node(parent: parent, level: level)
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
        edges[Self.edge(record.parent, record.level)] = nil
        freeNodes.append(node)
        levels.release(record.level)
    }
}
