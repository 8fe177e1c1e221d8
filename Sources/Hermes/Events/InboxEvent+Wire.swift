// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension InboxEvent {
    init(_ event: Hermes_V1_Event) { self.init(Body(event) ?? .unknown) }
}

extension InboxEvent.Body {
    fileprivate init?(_ event: Hermes_V1_Event) {
        switch event.event {
        case .message(let message):
            self = .message(Message(message))
        case .readMark(let mark):
            let conversation = Conversation(mark.conversation)
            let uid = UserID(rawValue: mark.uid)
            self = .readMark(ReadMark(conversation: conversation, uid: uid, upToSeq: mark.upToSeq))
        case .recalled(let recalled):
            self = .recall(
                Recall(
                    conversation: Conversation(recalled.conversation),
                    messageID: MessageID(rawValue: recalled.messageID),
                    byUID: UserID(rawValue: recalled.byUid)
                )
            )
        case .contact(let contact):
            guard let change = ContactChange(contact) else { return nil }
            self = .contact(change)
        case .group(let group):
            guard let change = GroupChange(group) else { return nil }
            self = .group(change)
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
            guard let stage = CallEvent.Stage(call.kind) else { return nil }
            self = .call(CallEvent(uid: UserID(rawValue: call.withUid), sessionID: call.sessionID, stage: stage))
        case .expired(let expired):
            self = .gap(event.seq...max(event.seq, expired.toSeq))
        // The server sends no replacements to a client without a limit, such as this one.
        case .oversized, nil:
            return nil
        }
    }
}

extension EphemeralEvent {
    init?(_ event: Hermes_V1_Ephemeral) {
        switch event.event {
        case .typing(let typing):
            let conversation = Conversation(typing.conversation)
            let uid = UserID(rawValue: typing.uid)
            self.init(.typing(Typing(conversation: conversation, uid: uid, isTyping: !typing.stopped)))
        case .presence(let presence):
            self.init(.presence(Presence(presence)))
        case .room(let room):
            guard let event = RoomEvent(room) else { return nil }
            self.init(.room(event))
        case .signal(let signal):
            let data: [UInt8]?
            switch signal.signal.signal {
            case .data(let bytes): data = [UInt8](bytes)
            case .end: data = nil
            case .address, nil: return nil
            }
            let uid = UserID(rawValue: signal.fromUid)
            self.init(.signal(Signal(fromUID: uid, sessionID: signal.signal.sessionID, data: data)))
        case nil:
            return nil
        }
    }
}

extension CallEvent.Stage {
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

extension ContactChange {
    fileprivate init?(_ event: Hermes_V1_ContactEvent) {
        let kind: Kind
        switch event.kind {
        case .requested: kind = .requested
        case .accepted: kind = .accepted
        case .declined: kind = .declined
        case .removed: kind = .removed
        case .unspecified, .UNRECOGNIZED: return nil
        }
        self.init(kind: kind, uid: UserID(rawValue: event.uid), nickName: event.nickName, message: event.message)
    }
}

extension GroupChange {
    fileprivate init?(_ event: Hermes_V1_GroupEvent) {
        let kind: Kind
        switch event.kind {
        case .created: kind = .created
        case .changed: kind = .changed
        case .membersAdded: kind = .membersAdded
        case .membersRemoved: kind = .membersRemoved
        case .dissolved: kind = .dissolved
        case .unspecified, .UNRECOGNIZED: return nil
        }
        self.init(
            kind: kind,
            groupID: GroupID(rawValue: event.group.id),
            name: event.group.name,
            byUID: UserID(rawValue: event.byUid),
            uids: event.uids.map { UserID(rawValue: $0) }
        )
    }
}
