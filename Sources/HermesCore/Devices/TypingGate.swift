// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits typing signals of one sender in one conversation: passes the first, then one for each interval, and a stop
/// only after a start. A suppressed signal is not sent later: the client repeats it.
///
/// State: a ``Locked`` around a table, bounded by ``maxEntries``.
package final class TypingGate: Sendable {
    /// The interval between two typing signals of one user in one 1:1 conversation.
    package static let directInterval = Duration.seconds(1)
    /// The same in a group, where each signal goes to many.
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

    private let signs = Locked<[Key: Sign]>([:])

    package init() {}

    /// The number of remembered signals.
    package var count: Int { signs.withLock { $0.count } }

    /// Whether a signal is passed on.
    ///
    /// - Parameters:
    ///   - isStopped: whether the user stopped typing.
    ///   - now: the wall clock; after it went back, the signal passes.
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

    /// A signal that passed was refused afterwards.
    package func forget(_ conversation: ConversationID, by user: UserID) {
        let key = Key(user: user, conversation: conversation)
        signs.withLock { $0[key] = nil }
    }

    /// Forgets signals that suppress nothing; if that is not enough, all: an extra signal does no harm.
    private static func makeRoom(in signs: inout [Key: Sign], now: Timestamp) {
        guard signs.count >= maxEntries else { return }
        let end = now.advanced(by: .zero - groupInterval)
        signs = signs.filter { $0.value.beganAt > end && $0.value.beganAt <= now }
        if signs.count >= maxEntries / 2 { signs = [:] }
    }
}
