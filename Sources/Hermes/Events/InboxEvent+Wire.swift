// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
            let uid = UserID(rawValue: typing.uid)
            self.init(.typing(uid, in: Conversation(typing.conversation), isTyping: !typing.stopped))
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
            self.init(.signal(from: uid, sessionID: signal.signal.sessionID, data: data))
        case nil:
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

extension ContactChange {
    fileprivate init?(_ kind: Hermes_V1_ContactEvent.Kind) {
        switch kind {
        case .requested: self = .requested
        case .accepted: self = .accepted
        case .declined: self = .declined
        case .removed: self = .removed
        case .unspecified, .UNRECOGNIZED: return nil
        }
    }
}

extension GroupChange {
    fileprivate init?(_ event: Hermes_V1_GroupEvent) {
        let uids = event.uids.map { UserID(rawValue: $0) }
        switch event.kind {
        case .created: self = .created(uids)
        case .changed: self = .changed
        case .membersAdded: self = .membersAdded(uids)
        case .membersRemoved: self = .membersRemoved(uids)
        case .dissolved: self = .dissolved
        case .unspecified, .UNRECOGNIZED: return nil
        }
    }
}
