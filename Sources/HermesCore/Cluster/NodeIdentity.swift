// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of a node, from 0 to 63. It is also the node's bit in a ``NodeSet``. The operator assigns it. A process
/// that replaces another process has the same number.
package struct NodeID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt8

    /// - Returns: nil if the number is above 63.
    package init?(rawValue: UInt8) {
        guard rawValue < NodeSet.maxNodes else { return nil }
        self.rawValue = rawValue
    }

    package var description: String { String(rawValue) }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A process of the server: its node, and a number that distinguishes it from the node's other processes.
package struct NodeIdentity: Hashable, Sendable, CustomStringConvertible {
    package let id: NodeID
    /// A number that grows with each process of the node (``PlaceStore/join(_:)``).
    package let epoch: UInt64

    package init(id: NodeID, epoch: UInt64) {
        self.id = id
        self.epoch = epoch
    }

    package var description: String { "\(id).\(epoch)" }
}

/// A set of nodes, as a bitmap.
package struct NodeSet: OptionSet, Hashable, Sendable {
    package static let maxNodes: UInt8 = 64

    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ node: NodeID) { rawValue = 1 << UInt64(node.rawValue) }

    package func contains(_ node: NodeID) -> Bool { rawValue & (1 << UInt64(node.rawValue)) != 0 }

    /// The nodes, in ascending order.
    package var nodes: [NodeID] {
        var (nodes, rest): ([NodeID], UInt64) = ([], rawValue)
        while rest != 0 {
            if let node = NodeID(rawValue: UInt8(rest.trailingZeroBitCount)) { nodes.append(node) }
            rest &= rest - 1
        }
        return nodes
    }
}
