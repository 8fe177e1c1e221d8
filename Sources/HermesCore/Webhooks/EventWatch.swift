// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// An event of the server, for everybody who watches at that moment. The event is not stored.
package enum ServerEvent: Sendable, Hashable {
    /// The kinds of events. The raw values are their names; webhooks use the same names.
    package enum Kind: String, Sendable, CaseIterable {
        case online
        case offline
        case messageAccepted = "message.accepted"
        case messageUndelivered = "message.undelivered"
        case pushResult = "push.result"

        fileprivate var bit: UInt32 {
            switch self {
            case .online: 1
            case .offline: 2
            case .messageAccepted: 4
            case .messageUndelivered: 8
            case .pushResult: 16
            }
        }
    }

    /// An event of a kind that webhooks also have.
    case notice(WebhookNotice)
    /// A message was committed.
    case accepted(Message)

    package var kind: Kind {
        switch self {
        case .accepted: .messageAccepted
        case .notice(.online): .online
        case .notice(.offline): .offline
        case .notice(.messageUndelivered): .messageUndelivered
        case .notice(.pushResult): .pushResult
        }
    }

    /// Returns the event as a JSON object, in the form in which a webhook would post it, but without an id.
    package func body(at now: Timestamp) -> [UInt8] {
        switch self {
        case .notice(let notice): notice.body(id: nil, at: now)
        case .accepted(let message): WebhookNotice.body(ofAccepted: message, at: now)
        }
    }
}

/// Passes the events of the server to everybody who watches them. If nobody watches, an event costs one atomic load.
///
/// State: an atomic for the wanted kinds.
package final class EventWatch: Sendable {
    private let wanted = Atomic<UInt32>(0)
    /// Called for each event of a wanted kind.
    package let happened = Hook<ServerEvent>()

    package init() {}

    /// Sets the kinds that somebody watches now.
    package func want(_ kinds: Set<ServerEvent.Kind>) {
        wanted.store(kinds.reduce(0) { $0 | $1.bit }, ordering: .relaxed)
    }

    package func wants(_ kind: ServerEvent.Kind) -> Bool { wanted.load(ordering: .relaxed) & kind.bit != 0 }

    /// Passes an event on, if somebody watches its kind.
    package func note(_ event: @autoclosure () -> ServerEvent, _ kind: ServerEvent.Kind) {
        guard wants(kind) else { return }
        happened(event())
    }

    /// Passes on the messages among committed entries, in the order of their ids. Each message is passed on once.
    func committed(_ entries: [UserID: [InboxEntry]]) {
        guard wants(.messageAccepted) else { return }
        var messages: [MessageID: Message] = [:]
        for case .message(let message) in entries.values.joined().lazy.map(\.event) { messages[message.id] = message }
        for message in messages.values.sorted(by: { $0.id < $1.id }) { note(.accepted(message), .messageAccepted) }
    }
}
