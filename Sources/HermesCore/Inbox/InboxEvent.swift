// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The content of an inbox entry.
package enum InboxEvent: Sendable, Hashable {
    /// A message to the user, or a message from the user for the user's other devices.
    case message(Message)
    case readMark(ReadMark)
    case recalled(RecalledMessage)
    /// A contact request, the answer to a request, or the end of a contact.
    case contact(ContactEvent)
    /// A group changed.
    case group(GroupEvent)
    /// A push from a back end.
    case push(Push)
    /// A hole: this entry and all entries up to `through` have expired or are no longer stored. If the time of the
    /// commit is unknown, ``InboxEntry/committedAt`` is 0.
    case expired(through: UInt64)

    /// The kinds, with the numbers under which stores keep them. The number of a kind never changes, and is never used
    /// for another kind.
    package enum StoredKind: Int64, Sendable, CaseIterable {
        // The number 0 stands for a message. The inbox contains only the key of the message.
        case readMark = 1
        case recalled = 2
        case contact = 3
        case group = 4
        case push = 5
    }

    /// - Returns: nil for a message and a hole, which do not conform to ``DurableKind``.
    private func ask<Question: KindQuestion>(_ question: Question) -> Question.Answer? {
        switch self {
        case .message, .expired: nil
        case .readMark(let kind): question.ask(kind)
        case .recalled(let kind): question.ask(kind)
        case .contact(let kind): question.ask(kind)
        case .group(let kind): question.ask(kind)
        case .push(let kind): question.ask(kind)
        }
    }

    /// Reads an event from its stored form.
    ///
    /// - Returns: nil if the bytes are damaged, or if a newer version wrote an event of a kind that this version does
    ///   not know.
    package init?(kind: Int64, stored bytes: [UInt8]) {
        var bytes = bytes[...]
        let event: InboxEvent?
        switch StoredKind(rawValue: kind) {
        case .readMark: event = ReadMark(stored: &bytes).map(InboxEvent.readMark)
        case .recalled: event = RecalledMessage(stored: &bytes).map(InboxEvent.recalled)
        case .contact: event = ContactEvent(stored: &bytes).map(InboxEvent.contact)
        case .group: event = GroupEvent(stored: &bytes).map(InboxEvent.group)
        case .push: event = Push(stored: &bytes).map(InboxEvent.push)
        case nil: event = nil
        }
        guard let event else { return nil }
        self = event
    }
}

// MARK: - Small kinds

/// `user` has read all messages of the conversation up to the conversation seq `upTo`.
package struct ReadMark: DurableKind {
    package let conversation: ConversationID
    package let user: UserID
    package let upTo: UInt64

    package static let storedKind = InboxEvent.StoredKind.readMark

    package init(_ conversation: ConversationID, by user: UserID, upTo seq: UInt64) {
        self.conversation = conversation
        self.user = user
        upTo = seq
    }

    package func store(into bytes: inout [UInt8]) {
        StoredForm.append(conversation, to: &bytes)
        StoredForm.append(user, to: &bytes)
        StoredForm.append(upTo, count: 8, to: &bytes)
    }

    package init?(stored bytes: inout ArraySlice<UInt8>) {
        guard let conversation = StoredForm.takeConversation(from: &bytes),
            let user = StoredForm.takeUser(from: &bytes),
            let seq = StoredForm.take(8, from: &bytes)
        else { return nil }
        self.init(conversation, by: user, upTo: seq)
    }

    package var actor: UserID? { user }
    package func alert(for user: UserID) -> EventAlert? { nil }
}

/// `user` has recalled one of its own messages.
package struct RecalledMessage: DurableKind {
    package let conversation: ConversationID
    package let id: MessageID
    package let conversationSeq: UInt64
    package let user: UserID

    package static let storedKind = InboxEvent.StoredKind.recalled

    package init(_ id: MessageID, in conversation: ConversationID, conversationSeq: UInt64, by user: UserID) {
        self.conversation = conversation
        self.id = id
        self.conversationSeq = conversationSeq
        self.user = user
    }

    package func store(into bytes: inout [UInt8]) {
        StoredForm.append(conversation, to: &bytes)
        StoredForm.append(user, to: &bytes)
        StoredForm.append(conversationSeq, count: 8, to: &bytes)
        StoredForm.append(id, to: &bytes)
    }

    package init?(stored bytes: inout ArraySlice<UInt8>) {
        guard let conversation = StoredForm.takeConversation(from: &bytes),
            let user = StoredForm.takeUser(from: &bytes),
            let seq = StoredForm.take(8, from: &bytes),
            let id = StoredForm.takeMessageID(from: &bytes)
        else { return nil }
        self.init(id, in: conversation, conversationSeq: seq, by: user)
    }

    package var actor: UserID? { user }
    package func alert(for user: UserID) -> EventAlert? { nil }
}

// MARK: - Questions to a kind

/// A question that each kind can answer. Its method is generic: with an existential parameter, each answer would cost
/// an allocation.
private protocol KindQuestion {
    associatedtype Answer
    func ask(_ kind: some DurableKind) -> Answer
}

extension InboxEvent {
    private struct Stored: KindQuestion {
        func ask<Kind: DurableKind>(_ kind: Kind) -> (kind: Int64, bytes: [UInt8]) {
            var bytes: [UInt8] = []
            kind.store(into: &bytes)
            return (Kind.storedKind.rawValue, bytes)
        }
    }

    /// The event in its stored form; nil for a message and a hole.
    package var stored: (kind: Int64, bytes: [UInt8])? { ask(Stored()) }

    private struct Actor: KindQuestion {
        func ask(_ kind: some DurableKind) -> UserID? { kind.actor }
    }

    /// The account that caused the event; nil if the server or a back end caused it, or if the event is a message or a
    /// hole.
    package var actor: UserID? { ask(Actor()) ?? nil }

    private struct Alert: KindQuestion {
        let user: UserID
        func ask(_ kind: some DurableKind) -> EventAlert? { kind.alert(for: user) }
    }

    /// Returns the alert for a sleeping device of `user`; nil if the event wakes no device, or if it is a message or a
    /// hole.
    package func alert(for user: UserID) -> EventAlert? { ask(Alert(user: user)) ?? nil }

    private struct Bytes: KindQuestion {
        func ask(_ kind: some DurableKind) -> Int { kind.bytes }
    }

    /// The size that the event adds to a page, in bytes; 0 for events that are always small.
    package var bytes: Int {
        if case .message(let message) = self { message.content.bytes.count } else { ask(Bytes()) ?? 0 }
    }

    private struct Expiry: KindQuestion {
        func ask(_ kind: some DurableKind) -> Timestamp? { kind.expiry }
    }

    /// The time after which the event is not delivered; nil if it is delivered for as long as it is stored.
    package var expiry: Timestamp? {
        if case .message(let message) = self { message.expiresAt } else { ask(Expiry()) ?? nil }
    }

    private struct Audience: KindQuestion {
        let device: DeviceID
        func ask(_ kind: some DurableKind) -> Bool { kind.isFor(device) }
    }

    /// Whether the given device of the inbox's account shows the event.
    package func isFor(_ device: DeviceID) -> Bool { ask(Audience(device: device)) ?? true }
}
