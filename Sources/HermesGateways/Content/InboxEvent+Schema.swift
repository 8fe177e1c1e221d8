// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

// Translates inbox entries to the schema `hermes.v1`. Gateways share this translation. IMPB has its own form for most
// kinds of events, and uses this schema for the other kinds.

extension Hermes_V1_Event {
    /// Creates the form in which the device of `principal` gets an entry.
    init(_ entry: InboxEntry, reader principal: Principal) {
        self.init()
        seq = entry.seq
        serverTimeMs = entry.committedAt.rawValue
        // If the entry is for another device, the event has a seq but no kind, because there is nothing to show.
        if entry.event.isFor(principal.device) { event = OneOf_Event(entry.event, reader: principal.user) }
    }
}

extension Hermes_V1_Event.OneOf_Event {
    fileprivate init(_ event: InboxEvent, reader: UserID) {
        switch event {
        case .message(let message): self = .message(Hermes_V1_Message(message, reader: reader))
        case .readMark(let mark): self = .readMark(Hermes_V1_ReadMark(mark, reader: reader))
        case .recalled(let recalled): self = .recalled(Hermes_V1_RecalledMessage(recalled, reader: reader))
        case .contact(let contact): self = .contact(Hermes_V1_ContactEvent(contact))
        case .group(let group): self = .group(Hermes_V1_GroupEvent(group))
        case .push(let push): self = .push(Hermes_V1_Push(push))
        case .expired(let seq): self = .expired(Hermes_V1_Expired(through: seq))
        }
    }

    /// The name of the event's field in `Event`.
    var name: String {
        switch self {
        case .message: "message"
        case .readMark: "read_mark"
        case .recalled: "recalled"
        case .contact: "contact"
        case .group: "group"
        case .push: "push"
        case .call: "call"
        case .expired: "expired"
        case .oversized: "oversized"
        }
    }
}

// MARK: - Kinds

extension Hermes_V1_ReadMark {
    fileprivate init(_ mark: ReadMark, reader: UserID) {
        self.init()
        conversation = Hermes_V1_Conversation(mark.conversation, reader: reader)
        uid = UInt32(mark.user.rawValue)
        upToSeq = mark.upTo
    }
}

extension Hermes_V1_RecalledMessage {
    fileprivate init(_ recalled: RecalledMessage, reader: UserID) {
        self.init()
        conversation = Hermes_V1_Conversation(recalled.conversation, reader: reader)
        messageID = recalled.id.description
        conversationSeq = recalled.conversationSeq
        byUid = UInt32(recalled.user.rawValue)
    }
}

extension Hermes_V1_ContactEvent {
    fileprivate init(_ event: ContactEvent) {
        self.init()
        kind =
            switch event.kind {
            case .requested: .requested
            case .accepted: .accepted
            case .declined: .declined
            case .removed: .removed
            }
        uid = UInt32(event.user.rawValue)
        nickName = event.nickName
        message = event.message
    }
}

extension Hermes_V1_GroupEvent {
    fileprivate init(_ event: GroupEvent) {
        self.init()
        kind =
            switch event.kind {
            case .created: .created
            case .changed: .changed
            case .membersAdded: .membersAdded
            case .membersRemoved: .membersRemoved
            case .dissolved: .dissolved
            }
        group = Hermes_V1_Group(event.group)
        byUid = UInt32(event.by.rawValue)
        uids = event.users.map { UInt32($0.rawValue) }
    }
}

extension Hermes_V1_Push {
    init(_ push: Push) {
        self.init()
        id = push.id.description
        title = push.content.title
        body = push.content.body
        dataJson = push.content.dataJSON
        collapseKey = push.content.collapseKey
        if let message = push.content.message {
            messageType = message.type
            messageBytes = Data(message.bytes)
        }
        priority =
            switch push.priority {
            case .normal: .normal
            case .high: .high
            }
        expiresAtMs = push.expiresAt.rawValue
    }
}

extension Hermes_V1_Expired {
    fileprivate init(through seq: UInt64) {
        self.init()
        toSeq = seq
    }
}

// MARK: - Parts of the kinds

extension Hermes_V1_Conversation {
    init(_ conversation: ConversationID, reader: UserID) {
        self.init()
        switch conversation {
        case .direct(let low, _): uid = UInt32((conversation.peer(of: reader) ?? low).rawValue)
        case .group(let group): groupID = UInt32(group.rawValue)
        }
    }
}

extension Hermes_V1_Message {
    init(_ message: Message, reader: UserID) {
        self.init()
        id = message.id.description
        conversation = Hermes_V1_Conversation(message.conversation, reader: reader)
        conversationSeq = message.conversationSeq
        fromUid = UInt32(message.sender.rawValue)
        fromNickName = message.senderName
        serverTimeMs = message.sentAt.rawValue
        own = message.sender == reader
        if own { clientID = message.clientID ?? "" }
        recalled = message.isRecalled
        if !message.isRecalled { content = CanonicalContent.parsed(message.content) }
    }
}

extension Hermes_V1_Group {
    init(_ summary: GroupSummary) {
        self.init()
        id = UInt32(summary.id.rawValue)
        name = summary.name
        avatarURL = summary.avatarURL
        muted = summary.isMuted
        historyOpen = summary.isHistoryOpen
        memberCount = UInt32(clamping: summary.memberCount)
        createdAtMs = summary.createdAt.rawValue
    }
}
