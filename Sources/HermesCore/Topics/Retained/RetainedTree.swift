// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Finds the topics that a filter matches: the converse of ``TopicTree``.
///
/// A trie over the levels of the topics. Edges to known levels lie in one hash table keyed by (node, level); the children of
/// a node are a linked list besides, for wildcards. Nodes are records in one array, level texts are kept once.
struct RetainedTree {
    /// What the owner keeps for a topic; anything but `UInt32.max`.
    typealias Value = UInt32

    private struct Node {
        var parent: UInt32
        var level: UInt32
        var firstChild: UInt32 = RetainedTree.none
        var next: UInt32 = RetainedTree.none
        var previous: UInt32 = RetainedTree.none
        var value: UInt32 = RetainedTree.none
    }

    private struct Level {
        var useCount: UInt32
        /// A topic of the server's own begins with it: wildcards leave it out [MQTT-4.7.2-1].
        let isReserved: Bool
        let text: String
    }

    private static let none = UInt32.max
    private static let root: UInt32 = 0

    private var nodes = [Node(parent: none, level: none)]
    private var freeNodes: [UInt32] = []
    private var edges: [UInt64: UInt32] = [:]
    private var levels: [Level] = []
    private var freeLevels: [UInt32] = []
    private var levelNumbers: [String: UInt32] = [:]

    /// How many records are in use; for tests.
    var footprint: Int { nodes.count - freeNodes.count + edges.count + levels.count - freeLevels.count }

    func value(of topic: TopicName) -> Value? {
        guard let node = find(topic.rawValue) else { return nil }
        return nodes[Int(node)].value == Self.none ? nil : nodes[Int(node)].value
    }

    mutating func insert(_ topic: TopicName, value: Value) {
        var node = Self.root
        for text in Self.split(topic.rawValue) { node = child(of: node, at: String(text)) }
        nodes[Int(node)].value = value
    }

    mutating func remove(_ topic: TopicName) {
        guard var node = find(topic.rawValue) else { return }
        nodes[Int(node)].value = Self.none
        while node != Self.root, nodes[Int(node)].firstChild == Self.none, nodes[Int(node)].value == Self.none {
            let parent = nodes[Int(node)].parent
            unlink(node)
            node = parent
        }
    }

    /// Calls `visit` with the value of each topic that the filter matches until it returns false.
    ///
    /// Takes time in proportion to the topics that match a beginning of the filter. No recursion: topics are deep.
    func forEachMatch(of filter: TopicFilter, _ visit: (Value) -> Bool) {
        let parts = Self.split(filter.rawValue)
        // Nodes that match the filter's first `depth` levels.
        var stack: [(node: UInt32, depth: Int)] = [(Self.root, 0)]
        while let (node, depth) = stack.popLast() {
            guard depth < parts.count else {
                let value = nodes[Int(node)].value
                if value != Self.none, !visit(value) { return }
                continue
            }
            switch parts[depth] {
            case "#":
                // "sport/#" also matches "sport" (4.7.1.2); the depth stays: all below match.
                let value = nodes[Int(node)].value
                if value != Self.none, !visit(value) { return }
                pushChildren(of: node, depth: depth, to: &stack)
            case "+":
                pushChildren(of: node, depth: depth + 1, to: &stack)
            default:
                guard let level = levelNumbers[String(parts[depth])], let child = edges[Self.edge(node, level)]
                else { continue }
                stack.append((child, depth + 1))
            }
        }
    }

    private func pushChildren(of node: UInt32, depth: Int, to stack: inout [(node: UInt32, depth: Int)]) {
        var child = nodes[Int(node)].firstChild
        while child != Self.none {
            let record = nodes[Int(child)]
            if node != Self.root || !levels[Int(record.level)].isReserved { stack.append((child, depth)) }
            child = record.next
        }
    }

    // MARK: Nodes

    private static func split(_ text: String) -> [Substring] {
        text.split(separator: "/", omittingEmptySubsequences: false)
    }

    private static func edge(_ node: UInt32, _ level: UInt32) -> UInt64 { UInt64(node) << 32 | UInt64(level) }

    private func find(_ topic: String) -> UInt32? {
        var node = Self.root
        for text in Self.split(topic) {
            guard let level = levelNumbers[String(text)], let child = edges[Self.edge(node, level)] else { return nil }
            node = child
        }
        return node
    }

    private mutating func child(of parent: UInt32, at text: String) -> UInt32 {
        let level = levelNumber(of: text)
        if let child = edges[Self.edge(parent, level)] { return child }
        levels[Int(level)].useCount += 1
        let first = nodes[Int(parent)].firstChild
        var node = Node(parent: parent, level: level)
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
        levels[Int(record.level)].useCount -= 1
        guard levels[Int(record.level)].useCount == 0 else { return }
        levelNumbers[levels[Int(record.level)].text] = nil
        levels[Int(record.level)] = Level(useCount: 0, isReserved: false, text: "")
        freeLevels.append(record.level)
    }

    private mutating func levelNumber(of text: String) -> UInt32 {
        if let number = levelNumbers[text] { return number }
        let level = Level(useCount: 0, isReserved: text.utf8.first == UInt8(ascii: "$"), text: text)
        let number: UInt32
        if let free = freeLevels.popLast() {
            number = free
            levels[Int(free)] = level
        } else {
            number = UInt32(levels.count)
            levels.append(level)
        }
        levelNumbers[text] = number
        return number
    }
}
