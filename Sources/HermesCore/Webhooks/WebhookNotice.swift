// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An event for the operator's back end.
package enum WebhookNotice: Sendable, Hashable {
    /// The kinds of events. The raw values are their names in the setting `webhooks.events` and in the field `type`.
    package enum Kind: String, Sendable, CaseIterable {
        case online
        case offline
        case messageUndelivered = "message.undelivered"
        case pushResult = "push.result"
    }

    /// The user's first device has connected.
    case online(UserID)
    /// The user's last device has disconnected.
    case offline(UserID)
    /// No device of the user has acknowledged the entry within the hand-off deadline.
    case messageUndelivered(UserID, InboxEntry)
    /// A push service has accepted or refused a notification.
    case pushResult(UserID, DeviceID, PushToken.Service, PushNotification, PushSendOutcome)

    package var kind: Kind {
        switch self {
        case .online: .online
        case .offline: .offline
        case .messageUndelivered: .messageUndelivered
        case .pushResult: .pushResult
        }
    }

    package var user: UserID {
        switch self {
        case .online(let user), .offline(let user), .messageUndelivered(let user, _),
            .pushResult(let user, _, _, _, _):
            user
        }
    }

    /// Returns the event in the form in which it is stored and posted.
    func event(id: String, now: Timestamp) -> WebhookEvent {
        WebhookEvent(id: id, user: user, createdAt: now, body: body(id: id, at: now))
    }

    /// Returns the event as a JSON object.
    ///
    /// - Parameter id: the id by which the receiver recognizes a repetition; nil if there is no id.
    func body(id: String?, at now: Timestamp) -> [UInt8] {
        Body(
            id: id,
            type: kind.rawValue,
            time: now.rawValue,
            user: user.rawValue,
            message: message,
            push: push
        ).bytes
    }

    /// Returns a JSON object of the same form for a message that was committed. Its field `user` is the sender.
    static func body(ofAccepted message: Message, at now: Timestamp) -> [UInt8] {
        Body(
            id: nil,
            type: ServerEvent.Kind.messageAccepted.rawValue,
            time: now.rawValue,
            user: message.sender.rawValue,
            message: Entry(
                seq: nil,
                conversationSeq: message.conversationSeq,
                id: String(describing: message.id),
                conversation: HandOffPlan.name(of: message.conversation, for: message.sender),
                from: message.sender.rawValue,
                sentAt: message.sentAt.rawValue
            ),
            push: nil
        ).bytes
    }

    private struct Body: Encodable {
        let id: String?
        let type: String
        let time: Int64
        let user: Int32
        let message: Entry?
        let push: Push?

        var bytes: [UInt8] {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // This cannot fail, because the object has only numbers and texts.
            return (try? encoder.encode(self)).map { Array($0) } ?? []
        }
    }

    private struct Entry: Encodable {
        /// The entry's seq in the user's inbox.
        let seq: UInt64?
        let conversationSeq: UInt64?
        let id: String?
        let conversation: String?
        let from: Int32?
        let sentAt: Int64
    }

    private struct Push: Encodable {
        let device: String
        let service: String
        let seq: UInt64
        let notification: String
        let result: String
        let detail: String?
    }

    private var message: Entry? {
        guard case .messageUndelivered(let user, let entry) = self else { return nil }
        guard case .message(let message) = entry.event else {
            // The entry is a push of a back end, or an event of another kind that wakes devices.
            return Entry(
                seq: entry.seq,
                conversationSeq: nil,
                id: entry.event.alert(for: user)?.id.map { String(describing: $0) },
                conversation: nil,
                from: nil,
                sentAt: entry.committedAt.rawValue
            )
        }
        return Entry(
            seq: entry.seq,
            conversationSeq: nil,
            id: String(describing: message.id),
            conversation: HandOffPlan.name(of: message.conversation, for: user),
            from: message.sender.rawValue,
            sentAt: message.sentAt.rawValue
        )
    }

    private var push: Push? {
        guard case .pushResult(_, let device, let service, let notification, let outcome) = self else { return nil }
        let (result, detail): (String, String?) =
            switch outcome {
            case .delivered(let id): ("delivered", id)
            case .tokenGone: ("token_gone", nil)
            case .refused(let reason): ("refused", reason)
            case .withdrawn: ("withdrawn", "")
            case .retry(_, _, let reason): ("retry", reason)
            }
        return Push(
            device: device.rawValue,
            service: service.name,
            seq: notification.reference.inboxSeq,
            notification: notification.id,
            result: result,
            detail: detail
        )
    }
}
