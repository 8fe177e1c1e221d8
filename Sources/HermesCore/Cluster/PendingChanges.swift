// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The name of an item of which each node has a copy. The items themselves are in the record (the content of the stores
/// that all nodes share).
package protocol ReplicaName: Hashable, Sendable {
    /// The approximate length of the name in a message between nodes, in bytes.
    var messageBytes: Int { get }
}

extension TopicName: ReplicaName {
    package var messageBytes: Int { rawValue.utf8.count }
}

extension DurableSessionID: ReplicaName {
    package var messageBytes: Int { MemoryLayout<RawValue>.size }
}

/// The names of the items that a node has changed.
package enum ChangedNames<Name: ReplicaName>: Sendable, Hashable {
    case some([Name])
    /// There are too many names to list them.
    case all
}

/// The names of items that must be reported to other nodes or read from the record. If they exceed the limits, the
/// value stands for all names. Does no I/O.
struct PendingChanges<Name: ReplicaName>: Sendable {
    static var limit: Int { 65_536 }
    static var maxBytes: Int { 4 << 20 }
    /// The limits for the result of one call to ``take()``.
    static var partLimit: Int { 256 }
    static var maxPartBytes: Int { 256 << 10 }

    private var names: Set<Name> = []
    private var bytes = 0
    private var isAll = false

    mutating func add(_ new: some Sequence<Name>) {
        guard !isAll else { return }
        for name in new where names.insert(name).inserted { bytes += name.messageBytes }
        if names.count > Self.limit || bytes > Self.maxBytes { addAll() }
    }

    mutating func addAll() {
        self = Self()
        isAll = true
    }

    /// - Returns: some names, which no longer wait; nil if there are none.
    mutating func take() -> ChangedNames<Name>? {
        if isAll {
            isAll = false
            return .all
        }
        var part: [Name] = []
        var size = 0
        while part.count < Self.partLimit, size < Self.maxPartBytes, let name = names.popFirst() {
            size += name.messageBytes
            part.append(name)
        }
        bytes -= size
        return part.isEmpty ? nil : .some(part)
    }
}
