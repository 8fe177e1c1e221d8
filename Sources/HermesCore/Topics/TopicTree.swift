// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An index that finds the filters that match a topic. Each filter has a value that the owner chooses.
///
/// The index is a trie over the levels of the filters. Nodes are records in one array, all edges are in one hash table,
/// and each level text is stored once. So each of a million filters needs only tens of bytes, and no object. Filters
/// without wildcards are in a separate hash table. A search works on the bytes of the topic. It allocates no memory
/// that grows with the topic, and visits each node at most once. Its time is proportional to the number of nodes that
/// match the first levels of the topic.
package struct TopicTree: Sendable {
    /// The owner's value for a filter, for example an index into an array of subscriber lists.
    package typealias Value = UInt32

    struct Node {
        var parent: UInt32
        /// The number of the level that leads to this node; ``plusLevel`` for `+`.
        var level: UInt32
        /// The node after `+`; ``none`` if there is no such node.
        var plus: UInt32 = TopicTree.none
        /// The number of edges to other nodes, including `plus`.
        var childCount: UInt32 = 0
        /// The value of the filter that ends here.
        var value: UInt32 = TopicTree.none
        /// The value of the filter that continues with `#` from here.
        var multiLevelValue: UInt32 = TopicTree.none

        /// Whether the node has edges for level texts.
        var hasNamedChildren: Bool { childCount > (plus == TopicTree.none ? 0 : 1) }
    }

    private static let none = UInt32.max
    private static let root: UInt32 = 0
    /// The number for `+`; no level text has this number.
    private static let plusLevel = UInt32.max

    private(set) var nodes: [Node] = [Node(parent: TopicTree.none, level: TopicTree.none)]
    private(set) var freeNodes: [UInt32] = []
    /// The nodes, by parent and level.
    private(set) var edges = HashIndex()
    private(set) var levels = LevelTexts()
    /// The filters without wildcards. ``exactValues`` has the value of each, by the number of its text.
    private(set) var exact = LevelTexts()
    private var exactValues: [Value] = []
    private let seed = UInt64.random(in: .min ... .max)
    /// The greatest depth of a node since the tree was last empty.
    private var depth = 0
    /// The number of filters.
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// Returns the value of a filter; nil if the filter is not in the tree.
    package func value(of filter: TopicFilter) -> Value? {
        guard filter.hasWildcard else {
            return filter.rawValue.withBytes { exact.number(of: $0) }.map { exactValues[Int($0)] }
        }
        guard let (node, isMultiLevel) = filter.rawValue.withBytes({ find($0) }) else { return nil }
        let value = isMultiLevel ? nodes[Int(node)].multiLevelValue : nodes[Int(node)].value
        return value == Self.none ? nil : value
    }

    /// Adds a filter or changes its value.
    ///
    /// - Parameter value: any number except `UInt32.max`.
    /// - Returns: the previous value; nil if the filter is new.
    @discardableResult
    package mutating func insert(_ filter: TopicFilter, value: Value) -> Value? {
        precondition(value != Self.none, "UInt32.max stands for no value")
        guard filter.hasWildcard else { return insertExact(filter, value: value) }
        let (node, isMultiLevel) = filter.rawValue.withBytes { makePath($0) }
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

    /// Removes a filter, and the nodes that only this filter needed.
    ///
    /// - Returns: the filter's value; nil if the filter was not in the tree.
    @discardableResult
    package mutating func remove(_ filter: TopicFilter) -> Value? {
        guard filter.hasWildcard else { return removeExact(filter) }
        guard let (node, isMultiLevel) = filter.rawValue.withBytes({ find($0) }) else { return nil }
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
        if count == 0 { depth = 0 }
        return old
    }

    /// Calls `visit` once with the value of each filter that matches, in no particular order.
    ///
    /// A wildcard in the first level does not match a topic that begins with `$` [MQTT-4.7.2-1].
    ///
    /// - Returns: the number of visited nodes, which determines the time.
    @discardableResult
    package func forEachMatch(of topic: TopicName, _ visit: (Value) -> Void) -> Int {
        guard count > 0 else { return 0 }
        return topic.rawValue.withBytes { bytes in
            if !exact.isEmpty, let number = exact.number(of: bytes) { visit(exactValues[Int(number)]) }
            guard nodes.count > 1 || nodes[0].multiLevelValue != Self.none else { return 0 }
            // The memory holds the numbers of the topic's levels, up to the depth of the tree, and a stack. Each
            // visited node removes one entry from the stack and adds at most two.
            let size = depth + 2
            return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 3 * size) { scratch in
                let names = UnsafeMutableBufferPointer(rebasing: scratch[..<size])
                let stack = UnsafeMutableBufferPointer(rebasing: scratch[size...])
                return nodes.withUnsafeBufferPointer { walk(bytes, nodes: $0, names: names, stack: stack, visit) }
            }
        }
    }

    /// Searches depth first. `names` caches the numbers of the topic's levels. Each number is looked up when the first
    /// node needs it.
    @inline(__always)
    private func walk(
        _ topic: UnsafeBufferPointer<UInt8>,
        nodes: UnsafeBufferPointer<Node>,
        names: UnsafeMutableBufferPointer<UInt32>,
        stack: UnsafeMutableBufferPointer<UInt32>,
        _ visit: (Value) -> Void
    ) -> Int {
        var visited = 0
        var reader = LevelReader(topic)
        var namedCount = 0
        var levelCount = Int.max
        let isReserved = topic.first == UInt8(ascii: "$")
        stack[0] = Self.root
        stack[1] = 0
        var top = 2
        while top > 0 {
            top &-= 2
            visited &+= 1
            let node = stack[top]
            let level = Int(stack[top &+ 1])
            let record = nodes[Int(node)]
            if level == levelCount {
                if record.value != Self.none { visit(record.value) }
                // "sport/#" also matches "sport" (4.7.1.2).
                if record.multiLevelValue != Self.none { visit(record.multiLevelValue) }
                continue
            }
            let mayUseWildcard = level > 0 || !isReserved
            if record.multiLevelValue != Self.none && mayUseWildcard { visit(record.multiLevelValue) }
            guard record.childCount > 0 else { continue }
            if level == namedCount {
                let text = reader.next() ?? UnsafeBufferPointer(rebasing: topic[..<0])
                names[level] = levels.number(of: text) ?? Self.none
                namedCount &+= 1
                if reader.isAtEnd { levelCount = namedCount }
            }
            if record.plus != Self.none && mayUseWildcard {
                stack[top] = record.plus
                stack[top &+ 1] = UInt32(level &+ 1)
                top &+= 2
            }
            let name = names[level]
            if name != Self.none, record.hasNamedChildren, let child = self.child(of: node, level: name, in: nodes) {
                stack[top] = child
                stack[top &+ 1] = UInt32(level &+ 1)
                top &+= 2
            }
        }
        return visited
    }

    // MARK: Filters without wildcards

    private mutating func insertExact(_ filter: TopicFilter, value: Value) -> Value? {
        filter.rawValue.withBytes { bytes in
            if let number = exact.number(of: bytes) {
                let old = exactValues[Int(number)]
                exactValues[Int(number)] = value
                return old
            }
            let number = Int(exact.use(bytes))
            if number == exactValues.count {
                exactValues.append(value)
            } else {
                exactValues[number] = value
            }
            count += 1
            return nil
        }
    }

    private mutating func removeExact(_ filter: TopicFilter) -> Value? {
        guard let number = filter.rawValue.withBytes({ exact.number(of: $0) }) else { return nil }
        exact.release(number)
        count -= 1
        return exactValues[Int(number)]
    }

    // MARK: Nodes

    private func hash(_ node: UInt32, _ level: UInt32) -> UInt32 {
        var mixed = (UInt64(node) << 32 | UInt64(level)) ^ seed
        mixed = (mixed ^ (mixed >> 33)) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ (mixed >> 33)) &* 0xc4ce_b9fe_1a85_ec53
        return UInt32(truncatingIfNeeded: mixed >> 32)
    }

    @inline(__always)
    private func child(of node: UInt32, level: UInt32, in nodes: UnsafeBufferPointer<Node>) -> UInt32? {
        edges.find(hash(node, level)) { nodes[Int($0)].parent == node && nodes[Int($0)].level == level }
    }

    private func child(of node: UInt32, level: UInt32) -> UInt32? {
        nodes.withUnsafeBufferPointer { child(of: node, level: level, in: $0) }
    }

    private static func isWildcard(_ text: UnsafeBufferPointer<UInt8>, _ wildcard: Unicode.Scalar) -> Bool {
        text.count == 1 && text[0] == UInt8(ascii: wildcard)
    }

    private func find(_ filter: UnsafeBufferPointer<UInt8>) -> (node: UInt32, isMultiLevel: Bool)? {
        var node = Self.root
        var reader = LevelReader(filter)
        while let text = reader.next() {
            if Self.isWildcard(text, "#") { return (node, true) }
            if Self.isWildcard(text, "+") {
                let next = nodes[Int(node)].plus
                guard next != Self.none else { return nil }
                node = next
            } else {
                guard let level = levels.number(of: text), let next = child(of: node, level: level) else { return nil }
                node = next
            }
        }
        return (node, false)
    }

    private mutating func makePath(_ filter: UnsafeBufferPointer<UInt8>) -> (node: UInt32, isMultiLevel: Bool) {
        var node = Self.root
        var reader = LevelReader(filter)
        var level = 0
        while let text = reader.next() {
            if Self.isWildcard(text, "#") { return (node, true) }
            node = Self.isWildcard(text, "+") ? makePlus(of: node) : makeChild(of: node, at: text)
            level += 1
            depth = max(depth, level)
        }
        return (node, false)
    }

    private mutating func makePlus(of node: UInt32) -> UInt32 {
        if nodes[Int(node)].plus != Self.none { return nodes[Int(node)].plus }
        let child = makeNode(parent: node, level: Self.plusLevel)
        nodes[Int(node)].plus = child
        return child
    }

    private mutating func makeChild(of node: UInt32, at text: UnsafeBufferPointer<UInt8>) -> UInt32 {
        if let level = levels.number(of: text), let child = child(of: node, level: level) { return child }
        let level = levels.use(text)
        let child = makeNode(parent: node, level: level)
        edges.insert(child, hash: hash(node, level))
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
                edges.remove(node, hash: hash(record.parent, record.level))
                levels.release(record.level)
            }
            nodes[Int(record.parent)].childCount -= 1
            freeNodes.append(node)
            node = record.parent
        }
    }
}
