// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Finds the filters that match a topic: an index of filters, each with a number that the owner chose.
///
/// A trie over the levels of the filters. All edges lie in one hash table keyed by (node, level), level texts are kept once,
/// and nodes are records in one array, so that a million filters cost tens of bytes each and no object. A match looks
/// at a node at most once; it takes time in proportion to the nodes that match a beginning of the topic.
package struct TopicTree: Sendable {
    /// What the owner keeps for a filter, for example an index into an array of subscriber lists.
    package typealias Value = UInt32

    private struct Node {
        var parent: UInt32
        /// The level that leads here; ``Level/plus`` for `+`.
        var level: UInt32
        /// The node behind `+`; ``none`` if there is none.
        var plus: UInt32 = TopicTree.none
        /// Edges to other nodes, `plus` among them.
        var childCount: UInt32 = 0
        /// The value of the filter that ends here.
        var value: UInt32 = TopicTree.none
        /// The value of the filter that goes on with `#` from here.
        var multiLevelValue: UInt32 = TopicTree.none
    }

    private struct Level {
        var text: String
        var useCount: UInt32
    }

    private static let none = UInt32.max
    private static let root: UInt32 = 0
    /// The number of no level text: `+`.
    private static let plusLevel = UInt32.max
    /// The number of a level that stands in no filter.
    private static let unknownLevel = UInt32.max - 1

    private var nodes: [Node] = [Node(parent: TopicTree.none, level: TopicTree.none)]
    private var freeNodes: [UInt32] = []
    private var edges: [UInt64: UInt32] = [:]
    private var levels: [Level] = []
    private var freeLevels: [UInt32] = []
    private var levelNumbers: [String: UInt32] = [:]
    /// How many filters there are.
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// How many records are in use, of all kinds; for tests and statistics.
    package var footprint: Int {
        nodes.count - freeNodes.count + edges.count + levels.count - freeLevels.count + levelNumbers.count
    }

    /// The value of a filter; nil if it is not in the tree.
    package func value(of filter: TopicFilter) -> Value? {
        guard let (node, isMultiLevel) = find(filter) else { return nil }
        let value = isMultiLevel ? nodes[Int(node)].multiLevelValue : nodes[Int(node)].value
        return value == Self.none ? nil : value
    }

    /// Adds a filter or changes its value.
    ///
    /// - Parameter value: anything but `UInt32.max`.
    /// - Returns: the value it had.
    @discardableResult
    package mutating func insert(_ filter: TopicFilter, value: Value) -> Value? {
        precondition(value != Self.none, "UInt32.max stands for no value")
        var node = Self.root
        var isMultiLevel = false
        for text in Self.split(filter.rawValue) {
            if text == "#" {
                isMultiLevel = true
            } else {
                node = child(of: node, at: text)
            }
        }
        let old: Value
        if isMultiLevel {
            old = nodes[Int(node)].multiLevelValue
            nodes[Int(node)].multiLevelValue = value
        } else {
            old = nodes[Int(node)].value
            nodes[Int(node)].value = value
        }
        guard old == Self.none else { return old }
        count += 1
        return nil
    }

    /// Removes a filter, and the nodes that led to it alone.
    ///
    /// - Returns: the value it had; nil if it was not in the tree.
    @discardableResult
    package mutating func remove(_ filter: TopicFilter) -> Value? {
        guard let (node, isMultiLevel) = find(filter) else { return nil }
        let old: Value
        if isMultiLevel {
            old = nodes[Int(node)].multiLevelValue
            nodes[Int(node)].multiLevelValue = Self.none
        } else {
            old = nodes[Int(node)].value
            nodes[Int(node)].value = Self.none
        }
        guard old != Self.none else { return nil }
        count -= 1
        prune(from: node)
        return old
    }

    /// Calls `visit` with the value of each filter that matches, each once, in no particular order.
    ///
    /// A topic that begins with `$` is not matched by a wildcard in the first level [MQTT-4.7.2-1].
    package func forEachMatch(of topic: TopicName, _ visit: (Value) -> Void) {
        guard count > 0 else { return }
        // The nodes that match the topic up to the present level.
        var current: [UInt32] = [Self.root]
        var next: [UInt32] = []
        let bytes = topic.rawValue.utf8
        let isReserved = bytes.first == UInt8(ascii: "$")
        var isFirst = true
        for text in Self.split(topic.rawValue) {
            let level = levelNumbers[String(text)] ?? Self.unknownLevel
            for node in current {
                let record = nodes[Int(node)]
                let mayUseWildcard = !(isFirst && isReserved)
                if record.multiLevelValue != Self.none && mayUseWildcard { visit(record.multiLevelValue) }
                guard record.childCount > 0 else { continue }
                if record.plus != Self.none && mayUseWildcard { next.append(record.plus) }
                if level != Self.unknownLevel, let child = edges[Self.edge(node, level)] { next.append(child) }
            }
            isFirst = false
            guard !next.isEmpty else { return }
            swap(&current, &next)
            next.removeAll(keepingCapacity: true)
        }
        for node in current {
            let record = nodes[Int(node)]
            if record.value != Self.none { visit(record.value) }
            // "sport/#" also matches "sport" (4.7.1.2).
            if record.multiLevelValue != Self.none { visit(record.multiLevelValue) }
        }
    }

    // MARK: Nodes

    private static func split(_ text: String) -> [Substring] {
        text.split(separator: "/", omittingEmptySubsequences: false)
    }

    private static func edge(_ node: UInt32, _ level: UInt32) -> UInt64 { UInt64(node) << 32 | UInt64(level) }

    private func find(_ filter: TopicFilter) -> (node: UInt32, isMultiLevel: Bool)? {
        var node = Self.root
        for text in Self.split(filter.rawValue) {
            if text == "#" { return (node, true) }
            let next: UInt32
            if text == "+" {
                next = nodes[Int(node)].plus
            } else {
                guard let level = levelNumbers[String(text)] else { return nil }
                next = edges[Self.edge(node, level)] ?? Self.none
            }
            guard next != Self.none else { return nil }
            node = next
        }
        return (node, false)
    }

    private mutating func child(of node: UInt32, at text: Substring) -> UInt32 {
        if text == "+" {
            if nodes[Int(node)].plus != Self.none { return nodes[Int(node)].plus }
            let child = makeNode(parent: node, level: Self.plusLevel)
            nodes[Int(node)].plus = child
            return child
        }
        let level = levelNumber(of: text)
        if let child = edges[Self.edge(node, level)] { return child }
        levels[Int(level)].useCount += 1
        let child = makeNode(parent: node, level: level)
        edges[Self.edge(node, level)] = child
        return child
    }

    private mutating func makeNode(parent: UInt32, level: UInt32) -> UInt32 {
        nodes[Int(parent)].childCount += 1
        let node = Node(parent: parent, level: level)
        if let free = freeNodes.popLast() {
            nodes[Int(free)] = node
            return free
        }
        nodes.append(node)
        return UInt32(nodes.count - 1)
    }

    private mutating func prune(from start: UInt32) {
        var node = start
        while node != Self.root {
            let record = nodes[Int(node)]
            guard record.childCount == 0, record.value == Self.none, record.multiLevelValue == Self.none else { return }
            if record.level == Self.plusLevel {
                nodes[Int(record.parent)].plus = Self.none
            } else {
                edges[Self.edge(record.parent, record.level)] = nil
                release(level: record.level)
            }
            nodes[Int(record.parent)].childCount -= 1
            freeNodes.append(node)
            node = record.parent
        }
    }

    // MARK: Level texts

    private mutating func levelNumber(of text: Substring) -> UInt32 {
        let text = String(text)
        if let number = levelNumbers[text] { return number }
        let number: UInt32
        if let free = freeLevels.popLast() {
            number = free
            levels[Int(free)] = Level(text: text, useCount: 0)
        } else {
            number = UInt32(levels.count)
            levels.append(Level(text: text, useCount: 0))
        }
        levelNumbers[text] = number
        return number
    }

    private mutating func release(level: UInt32) {
        levels[Int(level)].useCount -= 1
        guard levels[Int(level)].useCount == 0 else { return }
        levelNumbers[levels[Int(level)].text] = nil
        levels[Int(level)].text = ""
        freeLevels.append(level)
    }
}
