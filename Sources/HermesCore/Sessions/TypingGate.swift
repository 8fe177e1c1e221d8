// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets through as many typing signs of one sender in one conversation as anybody can see: the first, then one for each
/// interval, and an end only after a beginning. What is held back is not told later: a client repeats it while it holds.
///
/// State: a `Mutex` around a table, bounded by ``maxEntries``.
package final class TypingGate: Sendable {
    /// Between two signs that the same user types in the same 1:1 conversation.
    package static let directInterval = Duration.seconds(1)
    /// The same in a group, where each sign goes to many.
    package static let groupInterval = Duration.seconds(3)
    static let maxEntries = 65_536

    private struct Key: Hashable, Sendable {
        let user: UserID
        let conversation: ConversationID
    }

    private struct Sign: Sendable {
        var beganAt: Timestamp
        var isTyping: Bool
    }

    private let signs = Mutex<[Key: Sign]>([:])

    package init() {}

    /// How many signs are remembered.
    package var count: Int { signs.withLock { $0.count } }

    /// Whether a sign is to be passed on.
    ///
    /// - Parameters:
    ///   - isStopped: whether the user stopped typing.
    ///   - now: the wall clock; one that went back lets the sign through.
    package func admits(
        _ conversation: ConversationID,
        by user: UserID,
        isStopped: Bool,
        now: Timestamp
    ) -> Bool {
        let key = Key(user: user, conversation: conversation)
        let interval = if case .group = conversation { Self.groupInterval } else { Self.directInterval }
        return signs.withLock { signs in
            guard let last = signs[key] else {
                Self.makeRoom(in: &signs, now: now)
                signs[key] = Sign(beganAt: isStopped ? Timestamp(rawValue: 0) : now, isTyping: !isStopped)
                return true
            }
            if isStopped {
                signs[key]?.isTyping = false
                return last.isTyping
            }
            guard now < last.beganAt || now >= last.beganAt.advanced(by: interval) else { return false }
            signs[key] = Sign(beganAt: now, isTyping: true)
            return true
        }
    }

    /// A sign that was let through was refused after all.
    package func forget(_ conversation: ConversationID, by user: UserID) {
        let key = Key(user: user, conversation: conversation)
        signs.withLock { $0[key] = nil }
    }

    /// Forgets what holds nothing back any more; if that is not enough, everything: a sign too many is no harm.
    private static func makeRoom(in signs: inout [Key: Sign], now: Timestamp) {
        guard signs.count >= maxEntries else { return }
        let end = now.advanced(by: .zero - groupInterval)
        signs = signs.filter { $0.value.beganAt > end && $0.value.beganAt <= now }
        if signs.count >= maxEntries / 2 { signs = [:] }
    }
}
