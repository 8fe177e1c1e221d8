// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension InboxEvent {
    init(_ event: Hermes_V1_Event) {
        switch event.event {
        case .message(let message):
            self = .message(Message(message))
        case .readMark(let mark):
            self = .read(conversation: Conversation(mark.conversation), uid: mark.uid, upToSeq: mark.upToSeq)
        case .recalled(let recalled):
            self = .recalled(
                conversation: Conversation(recalled.conversation),
                messageID: recalled.messageID,
                byUID: recalled.byUid
            )
        case .contact(let contact):
            guard let change = ContactChange(contact) else {
                self = .unknown
                return
            }
            self = .contact(change)
        case .group(let group):
            guard let change = GroupChange(group) else {
                self = .unknown
                return
            }
            self = .group(change)
        case .push(let push):
            self = .push(
                Push(
                    id: push.id,
                    title: push.title,
                    body: push.body,
                    dataJSON: push.dataJson,
                    collapseKey: push.collapseKey,
                    expiresAtMilliseconds: push.expiresAtMs,
                    isUrgent: push.priority == .high,
                    topic: push.topic
                )
            )
        case .call(let call):
            guard let kind = CallKind(call.kind) else {
                self = .unknown
                return
            }
            self = .call(withUID: call.withUid, sessionID: call.sessionID, kind: kind)
        case .expired(let expired):
            self = .gap(from: event.seq, to: max(event.seq, expired.toSeq))
        // The server sends no replacements to a client without a limit, such as this one.
        case .oversized, nil:
            self = .unknown
        }
    }

    init?(_ event: Hermes_V1_Ephemeral) {
        switch event.event {
        case .typing(let typing):
            self = .typing(
                conversation: Conversation(typing.conversation),
                uid: typing.uid,
                isTyping: !typing.stopped
            )
        case .presence(let presence):
            self = .presence(Presence(presence))
        case .room(let room):
            guard let event = RoomEvent(room) else { return nil }
            self = .room(event)
        case .signal(let signal):
            switch signal.signal.signal {
            case .data(let data):
                self = .signal(fromUID: signal.fromUid, sessionID: signal.signal.sessionID, data: [UInt8](data))
            case .end:
                self = .signal(fromUID: signal.fromUid, sessionID: signal.signal.sessionID, data: nil)
            case .address, nil:
                return nil
            }
        case nil:
            return nil
        }
    }
}

extension InboxEvent.CallKind {
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
        self.init(kind: kind, uid: event.uid, nickName: event.nickName, message: event.message)
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
            groupID: event.group.id,
            name: event.group.name,
            byUID: event.byUid,
            uids: event.uids
        )
    }
}
