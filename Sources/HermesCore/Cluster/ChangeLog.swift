// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The changes of one kind that a node has published. They are kept for nodes that have not received all of them. Does
/// no I/O.
struct ChangeLog<Change: Sendable>: Sendable {
    /// The number of changes that are kept. This number is enough, because changes of accounts and devices are rare
    /// compared with everything else.
    static var defaultLimit: Int { 16_384 }

    private let limit: Int
    private var changes: [Change] = []
    /// The number of the last change. Numbers begin with 1.
    private(set) var last: UInt64 = 0

    init(limit: Int = Self.defaultLimit) { self.limit = max(2, limit) }

    /// - Returns: the number of the change.
    mutating func append(_ change: Change) -> UInt64 {
        if changes.count >= limit { changes.removeFirst(limit / 2) }
        changes.append(change)
        last += 1
        return last
    }

    /// - Returns: the changes after `number`; nil if some of them are no longer kept.
    func after(_ number: UInt64) -> [Change]? {
        guard number < last else { return [] }
        let count = last - number
        return count > UInt64(changes.count) ? nil : Array(changes.suffix(Int(count)))
    }
}
