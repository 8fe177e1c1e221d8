// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The receiving end of a link between two nodes. Decides which of the link's numbered messages are delivered. Does no
/// I/O.
package struct LinkNumbers: Sendable {
    package enum Arrival: Sendable, Hashable {
        /// The message has the next number.
        case next
        /// The message has a later number, and the messages in between are lost.
        case afterGap
        /// The message was already delivered, or was counted as lost.
        case late
    }

    /// The highest number that has arrived.
    package private(set) var last: UInt64 = 0

    package init() {}

    /// Records that a message has arrived. Numbers begin with 1.
    package mutating func received(_ number: UInt64) -> Arrival {
        guard number > last else { return .late }
        defer { last = number }
        return number - last == 1 ? .next : .afterGap
    }

    /// Records the number of the last message that the other end has sent.
    ///
    /// - Returns: whether messages are lost.
    package mutating func beat(_ number: UInt64) -> Bool {
        guard number > last else { return false }
        last = number
        return true
    }
}
