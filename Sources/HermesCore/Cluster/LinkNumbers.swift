// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The receiving end of a link between two nodes. Decides which of the link's numbered messages are delivered. Does no
/// I/O.
package struct LinkNumbers: Sendable {
    package enum Arrival: Sendable, Hashable {
        /// The message is the next one.
        case next
        /// The message is a later one, and the messages between are lost.
        case afterGap
        /// The message was delivered before, or was counted as lost.
        case late
    }

    /// The highest number that has arrived.
    package private(set) var last: UInt64 = 0

    package init() {}

    /// Takes note that a message has arrived; numbers begin with 1.
    package mutating func received(_ number: UInt64) -> Arrival {
        guard number > last else { return .late }
        defer { last = number }
        return number - last == 1 ? .next : .afterGap
    }

    /// Takes note of the number of the last message that the other end has sent.
    ///
    /// - Returns: whether messages are lost.
    package mutating func beat(_ number: UInt64) -> Bool {
        guard number > last else { return false }
        last = number
        return true
    }
}
