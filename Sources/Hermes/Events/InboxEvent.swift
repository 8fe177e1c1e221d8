// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An entry of the inbox, which the server keeps until the app has taken it. Each arrives once and in order.
///
/// ```swift
/// for await event in client.events {
///     switch event.kind {
///     case .message: if let message = event.message { show(message) }
///     case .push: if let push = event.push { notify(push) }
///     default: break   // of no interest, or of a kind that a newer version added
///     }
/// }
/// ```
///
/// The value that belongs to the kind is set; all others are nil.
public struct InboxEvent: Hashable, Sendable {
    /// A kind of event. Newer versions add kinds, so a `switch` over them needs a `default`.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The kind's name, for logs.
        public let description: String

        /// A message from another account, or from another device of this account: ``InboxEvent/message``.
        public static let message = Kind(description: "message")
        /// Somebody read a conversation: ``InboxEvent/readMark``.
        public static let readMark = Kind(description: "readMark")
        /// A message was recalled: ``InboxEvent/recall``.
        public static let recall = Kind(description: "recall")
        /// An account asked for contact, answered a request or ended a contact: ``InboxEvent/contact``.
        public static let contact = Kind(description: "contact")
        /// A group was created, changed or dissolved: ``InboxEvent/group``.
        public static let group = Kind(description: "group")
        /// A push from a back end: ``InboxEvent/push``.
        public static let push = Kind(description: "push")
        /// A call rang, was answered, missed or ended: ``InboxEvent/call``.
        public static let call = Kind(description: "call")
        /// The server deleted entries before this device got them: ``InboxEvent/gap``.
        public static let gap = Kind(description: "gap")
        /// The server lost its store and began a new inbox. Entries that the app had not received are lost.
        public static let inboxReset = Kind(description: "inboxReset")
        /// An entry that this version does not know.
        public static let unknown = Kind(description: "unknown")
    }

    package enum Body: Hashable, Sendable {
        case message(Message)
        case readMark(ReadMark)
        case recall(Recall)
        case contact(ContactChange)
        case group(GroupChange)
        case push(Push)
        case call(CallEvent)
        case gap(ClosedRange<UInt64>)
        case inboxReset
        case unknown
    }

    package let body: Body

    package init(_ body: Body) { self.body = body }

    /// The kind of event.
    public var kind: Kind {
        switch body {
        case .message: .message
        case .readMark: .readMark
        case .recall: .recall
        case .contact: .contact
        case .group: .group
        case .push: .push
        case .call: .call
        case .gap: .gap
        case .inboxReset: .inboxReset
        case .unknown: .unknown
        }
    }

    /// The message.
    public var message: Message? { if case .message(let message) = body { message } else { nil } }
    /// Who read a conversation, and how far.
    public var readMark: ReadMark? { if case .readMark(let mark) = body { mark } else { nil } }
    /// The message that was recalled.
    public var recall: Recall? { if case .recall(let recall) = body { recall } else { nil } }
    /// The change of a contact.
    public var contact: ContactChange? { if case .contact(let change) = body { change } else { nil } }
    /// The change of a group.
    public var group: GroupChange? { if case .group(let change) = body { change } else { nil } }
    /// The push.
    public var push: Push? { if case .push(let push) = body { push } else { nil } }
    /// The stage of a call.
    public var call: CallEvent? { if case .call(let call) = body { call } else { nil } }
    /// The seqs of the deleted entries. They cannot be fetched.
    public var gap: ClosedRange<UInt64>? { if case .gap(let gap) = body { gap } else { nil } }
}

/// How far an account read a conversation.
public struct ReadMark: Hashable, Sendable {
    /// The conversation.
    public let conversation: Conversation
    /// The account that read it.
    public let uid: UserID
    /// The conversation seq of the last message that was read.
    public let upToSeq: UInt64
}

/// A message that was recalled.
public struct Recall: Hashable, Sendable {
    /// The message's conversation.
    public let conversation: Conversation
    /// The message.
    public let messageID: MessageID
    /// The account that recalled it.
    public let byUID: UserID
}

/// A stage of a call.
public struct CallEvent: Hashable, Sendable {
    /// A stage of a call.
    public enum Stage: Hashable, Sendable {
        /// The call rang.
        case ringing
        /// The call was answered.
        case answered
        /// The call was not answered.
        case missed
        /// The call ended.
        case ended
    }

    /// The other account.
    public let uid: UserID
    /// The id of the call's set-up data, see ``EphemeralEvent/signal``.
    public let sessionID: String
    /// The stage.
    public let stage: Stage
}
