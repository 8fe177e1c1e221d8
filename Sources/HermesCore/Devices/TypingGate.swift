// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits the typing signals of one sender in one conversation: it lets the first signal pass, and then one signal in
/// each interval. A later stop signal passes only after a start signal. A suppressed signal is not sent later, because
/// the client repeats it.
///
/// State: a ``Locked`` around a table of at most ``maxEntries`` entries.
package final class TypingGate: Sendable {
    /// The interval between two typing signals of one user in one 1:1 conversation.
    package static let directInterval = Duration.seconds(1)
    /// The interval between two typing signals of one user in a group. It is longer, because each signal goes to many
    /// members.
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

    /// Whether a signal passes.
    ///
    /// - Parameters:
    ///   - isStopped: whether the user stopped typing.
    ///   - now: the time of the wall clock. If the clock was set back since the last signal, the signal passes.
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

    /// Forgets a signal that passed and was refused afterwards.
    package func forget(_ conversation: ConversationID, by user: UserID) {
        let key = Key(user: user, conversation: conversation)
        signs.withLock { $0[key] = nil }
    }

    /// Forgets signals that no longer suppress other signals. If too many remain, forgets all signals, because an
    /// additional signal does no harm.
    private static func makeRoom(in signs: inout [Key: Sign], now: Timestamp) {
        guard signs.count >= maxEntries else { return }
        let end = now.advanced(by: .zero - groupInterval)
        signs = signs.filter { $0.value.beganAt > end && $0.value.beganAt <= now }
        if signs.count >= maxEntries / 2 { signs = [:] }
    }
}
