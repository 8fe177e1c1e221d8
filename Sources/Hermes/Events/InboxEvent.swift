// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An entry of the inbox. The server keeps an entry until the app has taken it. Each entry arrives once and in order.
///
/// ```swift
/// for await event in client.events {
///     switch event.kind {
///     case .message(let message): show(message)
///     case .recall(let id, in: let conversation, by: _): remove(id, from: conversation)
///     default: break   // of no interest, or of a kind that a newer version added
///     }
/// }
/// ```
public struct InboxEvent: Hashable, Sendable {
    /// A kind of event, with its values. Newer versions add kinds, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Kind: Hashable, Sendable {
        /// A message from another account, or from another device of this account.
        case message(Message)
        /// An account read a conversation up to the message with this conversation seq.
        case readMark(by: UserID, in: Conversation, upToSeq: UInt64)
        /// An account recalled a message.
        case recall(MessageID, in: Conversation, by: UserID)
        /// An account sent or answered a contact request, or ended a contact, with this message.
        case contact(ContactChange, by: UserID, nickName: String, message: String)
        /// An account created, changed or dissolved a group. The group now has this name.
        case group(GroupChange, of: GroupID, name: String, by: UserID)
        /// A push from a back end.
        case push(Push)
        /// A call with another account. The call's ``EphemeralEvent/Kind/signal(from:sessionID:data:)`` events have the
        /// same session id.
        case call(CallStage, with: UserID, sessionID: String)
        /// The server deleted the entries with these seqs before this device got them. The deleted entries cannot be
        /// fetched.
        case gap(ClosedRange<UInt64>)
        /// The server lost its store, or the newest entries in its store. It assigns the seqs of the lost entries to
        /// new entries. Lost entries that the app has not received will not arrive.
        case inboxReset
        /// An entry of a kind that this version does not know.
        case unknown
    }

    /// A stage of a call. Newer versions add stages, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum CallStage: Hashable, Sendable {
        /// The call rang.
        case ringing
        /// The call was answered.
        case answered
        /// The call was not answered.
        case missed
        /// The call ended.
        case ended
    }

    /// The kind of event, with its values.
    public let kind: Kind

    package init(_ kind: Kind) { self.kind = kind }

    /// The message; nil if the entry is of another kind.
    public var message: Message? { if case .message(let message) = kind { message } else { nil } }
    /// The push; nil if the entry is of another kind.
    public var push: Push? { if case .push(let push) = kind { push } else { nil } }
    /// The seqs of deleted entries; nil if the event is of another kind.
    package var gap: ClosedRange<UInt64>? { if case .gap(let gap) = kind { gap } else { nil } }
}

// MARK: - From the schema

extension InboxEvent {
    init(_ event: Hermes_V1_Event) { self.init(Kind(event) ?? .unknown) }
}

extension InboxEvent.Kind {
    fileprivate init?(_ event: Hermes_V1_Event) {
        switch event.event {
        case .message(let message):
            self = .message(Message(message))
        case .readMark(let mark):
            let uid = UserID(rawValue: mark.uid)
            self = .readMark(by: uid, in: Conversation(mark.conversation), upToSeq: mark.upToSeq)
        case .recalled(let recalled):
            self = .recall(
                MessageID(rawValue: recalled.messageID),
                in: Conversation(recalled.conversation),
                by: UserID(rawValue: recalled.byUid)
            )
        case .contact(let contact):
            guard let change = ContactChange(contact.kind) else { return nil }
            let uid = UserID(rawValue: contact.uid)
            self = .contact(change, by: uid, nickName: contact.nickName, message: contact.message)
        case .group(let group):
            guard let change = GroupChange(group) else { return nil }
            let (id, uid) = (GroupID(rawValue: group.group.id), UserID(rawValue: group.byUid))
            self = .group(change, of: id, name: group.group.name, by: uid)
        case .push(let push):
            self = .push(
                Push(
                    id: push.id,
                    title: push.title,
                    body: push.body,
                    dataJSON: push.dataJson,
                    collapseKey: push.collapseKey,
                    expiresAt: Date(knownMilliseconds: push.expiresAtMs),
                    isUrgent: push.priority == .high,
                    topic: push.topic,
                    messageType: push.messageType,
                    messageBytes: [UInt8](push.messageBytes)
                )
            )
        case .call(let call):
            guard let stage = InboxEvent.CallStage(call.kind) else { return nil }
            self = .call(stage, with: UserID(rawValue: call.withUid), sessionID: call.sessionID)
        case .expired(let expired):
            self = .gap(event.seq...max(event.seq, expired.toSeq))
        // `oversized` replaces an entry that exceeds the client's length limit. This client announces no limit, so it
        // never gets `oversized`.
        case .oversized, nil:
            return nil
        }
    }
}

extension InboxEvent.CallStage {
    fileprivate init?(_ kind: Hermes_V1_CallEvent.Kind) {
        switch kind {
        case .ringing: self = .ringing
        case .answered: self = .answered
        case .missed: self = .missed
        case .ended: self = .ended
        case .unspecified, .UNRECOGNIZED: return nil
        }
    }
}
