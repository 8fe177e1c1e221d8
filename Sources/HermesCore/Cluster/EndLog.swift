// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The ends that a node has published, for nodes that have missed some. Pure.
struct EndLog: Sendable {
    /// Changes of accounts are rare beside everything else; a node that misses more has its clients log in again.
    static let defaultLimit = 16_384

    private let limit: Int
    private var ends: [AccountEnd] = []
    /// The number of the last; they begin with 1.
    private(set) var last: UInt64 = 0

    init(limit: Int = defaultLimit) { self.limit = max(2, limit) }

    /// - Returns: its number.
    mutating func append(_ end: AccountEnd) -> UInt64 {
        if ends.count >= limit { ends.removeFirst(limit / 2) }
        ends.append(end)
        last += 1
        return last
    }

    /// - Returns: nil if some of them are forgotten.
    func after(_ number: UInt64) -> [AccountEnd]? {
        guard number < last else { return [] }
        let count = last - number
        return count > UInt64(ends.count) ? nil : Array(ends.suffix(Int(count)))
    }
}
