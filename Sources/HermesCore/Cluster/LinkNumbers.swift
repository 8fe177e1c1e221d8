// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The receiving end of a link: which of its numbered messages are given out. Pure.
package struct LinkNumbers: Sendable {
    package enum Arrival: Sendable, Hashable {
        /// The next one.
        case next
        /// A later one: those between are lost.
        case afterGap
        /// Given out before, or counted as lost.
        case late
    }

    /// The highest number that has come.
    package private(set) var last: UInt64 = 0

    package init() {}

    /// A message has come; numbers begin with 1.
    package mutating func received(_ number: UInt64) -> Arrival {
        guard number > last else { return .late }
        defer { last = number }
        return number - last == 1 ? .next : .afterGap
    }

    /// The other end says what it sent last.
    ///
    /// - Returns: whether messages are lost.
    package mutating func beat(_ number: UInt64) -> Bool {
        guard number > last else { return false }
        last = number
        return true
    }
}
