// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a node has published of one kind, for nodes that have missed some. Pure.
struct ChangeLog<Change: Sendable>: Sendable {
    /// Changes of accounts and devices are rare beside everything else.
    static var defaultLimit: Int { 16_384 }

    private let limit: Int
    private var changes: [Change] = []
    /// The number of the last; they begin with 1.
    private(set) var last: UInt64 = 0

    init(limit: Int = Self.defaultLimit) { self.limit = max(2, limit) }

    /// - Returns: its number.
    mutating func append(_ change: Change) -> UInt64 {
        if changes.count >= limit { changes.removeFirst(limit / 2) }
        changes.append(change)
        last += 1
        return last
    }

    /// - Returns: nil if some of them are forgotten.
    func after(_ number: UInt64) -> [Change]? {
        guard number < last else { return [] }
        let count = last - number
        return count > UInt64(changes.count) ? nil : Array(changes.suffix(Int(count)))
    }
}
