// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates from the core to IMPB.
enum IMPBTranslation {
    // MARK: Errors

    static func error(_ error: HermesError) -> IMPB_ErrorMsg {
        var answer = IMPB_ErrorMsg()
        answer.type = isInvalid(error.code) ? .invalidParams : .common
        answer.msg = error.message
        answer.code = error.code.rawValue
        if let wait = error.retryAfterMilliseconds { answer.retryAfterMs = wait }
        return answer
    }

    /// Whether the contents of the request caused the error. The type of all other errors is "common".
    private static func isInvalid(_ code: HermesError.Code) -> Bool {
        switch code {
        case .wrongCredentials, .invalidToken, .nameTaken, .invalidArgument, .notFound, .clientIDConflict, .tooLarge:
            true
        default:
            false
        }
    }

    /// Returns the error that the client gets when the server ends its connection; nil if it gets none.
    static func farewell(_ reason: CloseReason) -> HermesError? {
        switch reason {
        case .goodbye, .finished, .malformed, .loginBudget, .loginRefused: nil
        case .notAuthenticated: HermesError(.notAuthenticated, "the client did not log in in time")
        case .tokenExpired: HermesError(.invalidToken, "the token has expired; log in with a new one")
        case .idle: HermesError(.notAuthenticated, "the client was silent for too long; send pings more often")
        case .slowReader: HermesError(.rateLimited, "the client did not read its messages")
        case .memory: HermesError(.overloaded, CloseReason.memoryText)
        case .rateLimited: HermesError(.rateLimited, CloseReason.rateText)
        case .attachment(.replaced): HermesError(.replaced, "the same device logged in again")
        case .attachment(.accountDisabled): HermesError(.accountDisabled, CloseReason.disabledText)
        case .attachment(.accountDeleted): HermesError(.accountDisabled, CloseReason.deletedText)
        case .attachment(.accountRenamed): HermesError(.notAuthenticated, "the account has another name")
        case .attachment(.revoked): HermesError(.invalidToken, "the token was revoked; log in again")
        case .attachment(.shuttingDown), .shuttingDown: HermesError(.shuttingDown, CloseReason.stoppingText)
        }
    }

    static func kicked(_ error: HermesError, user: UserID) -> IMPB_Notification_msg {
        var body = IMPB_kicked_notification()
        body.code = error.code.rawValue
        body.reason = error.message
        return notification(.kicked, for: user, body)
    }

    // MARK: Accounts

    /// Returns the notification with the number of entries that wait for a device at its login; nil if none wait.
    static func waiting(_ login: Login) -> IMPB_Notification_msg? {
        let count = waiting(after: login.device.cursor, login.position)
        guard count > 0 else { return nil }
        var body = IMPB_offline_msg_notification()
        body.count = UInt32(clamping: count)
        body.headSeq = login.position.head
        return notification(.offlineMsg, for: login.principal.user, body)
    }

    /// Returns the number of entries that wait for a device with this cursor. Many seqs may have no entry, so the
    /// result is at most the number of stored entries.
    static func waiting(after cursor: UInt64, _ position: InboxPosition) -> UInt64 {
        let first = max(cursor, position.oldest - min(position.oldest, 1))
        guard position.head > first else { return 0 }
        return min(position.head - first, position.entries.map { UInt64(clamping: $0) } ?? .max)
    }

    static func userInfo(_ account: Account, isOnline: Bool) -> IMPB_User_info {
        var info = IMPB_User_info()
        info.uid = UInt32(account.id.rawValue)
        info.nickName = account.nickName.rawValue
        info.avartaURL = account.avatarURL
        info.isOnline = isOnline ? 1 : 0
        return info
    }

    // MARK: Messages

    static func receipt(_ receipt: SendReceipt) -> IMPB_Message_receipt {
        var answer = IMPB_Message_receipt()
        answer.messageID = receipt.messageID.description
        answer.serverTime = receipt.sentAt.rawValue
        answer.seq = receipt.inboxSeq
        answer.clientID = receipt.clientID ?? ""
        answer.conversationSeq = receipt.conversationSeq
        answer.duplicate = receipt.isDuplicate
        return answer
    }

    /// The wire form of an inbox entry.
    enum Delivery {
        case message(IMPB_base_msg)
        case notification(IMPB_Notification_msg)
    }

    /// - Returns: nil for an entry that is not for this device.
    static func delivery(_ entry: InboxEntry, reader: Principal) -> Delivery? {
        var notification: IMPB_Notification_msg
        switch entry.event {
        case .message(let message) where !message.isRecalled:
            return .message(base(message, seq: entry.seq, reader: reader))
        case .message(let message):
            // The content of a recalled message is gone, but the entry stays in the inbox.
            let recalled = RecalledMessage(
                message.id,
                in: message.conversation,
                conversationSeq: message.conversationSeq,
                by: message.sender
            )
            notification = self.notification(recalled, for: reader.user)
        case .recalled(let recalled):
            notification = self.notification(recalled, for: reader.user)
        case .readMark(let mark):
            notification = self.notification(mark, for: reader.user)
        case .contact(let event):
            notification = self.notification(event, for: reader.user)
        case .group(let event):
            notification = self.notification(event, for: reader.user)
        case .push(let push) where push.isFor(reader.device):
            notification = self.notification(push, for: reader.user)
        case .expired(let seq):
            var body = IMPB_expired_notification()
            body.toSeq = seq
            notification = self.notification(.expired, for: reader.user, body)
        // The entry is for another device, or IMPB has no notification for its kind.
        default:
            guard entry.event.isFor(reader.device) else { return nil }
            return .notification(numbered(entry, reader: reader))
        }
        notification.seq = entry.seq
        notification.serverTime = entry.committedAt.rawValue
        return .notification(notification)
    }

    /// Returns the notification in the native schema with the entry's seq. If the entry is for another device, the
    /// notification shows nothing.
    static func numbered(_ entry: InboxEntry, reader: Principal) -> IMPB_Notification_msg {
        var notification = inSchema(entry, reader: reader)
        notification.seq = entry.seq
        notification.serverTime = entry.committedAt.rawValue
        return notification
    }

    /// Returns the notification for an entry of a kind for which IMPB has no notification.
    static func inSchema(_ entry: InboxEntry, reader: Principal) -> IMPB_Notification_msg {
        notification(.event, for: reader.user, Hermes_V1_Event(entry, reader: reader))
    }

    private static func notification(_ recalled: RecalledMessage, for reader: UserID) -> IMPB_Notification_msg {
        var body = IMPB_recall_notification()
        body.conversation = conversation(recalled.conversation, reader: reader)
        body.messageID = recalled.id.description
        body.conversationSeq = recalled.conversationSeq
        body.byUid = UInt32(recalled.user.rawValue)
        return notification(.recalled, for: reader, body)
    }

    private static func notification(_ mark: ReadMark, for reader: UserID) -> IMPB_Notification_msg {
        var body = IMPB_read_notification()
        body.conversation = conversation(mark.conversation, reader: reader)
        body.uid = UInt32(mark.user.rawValue)
        body.upToSeq = mark.upTo
        return notification(.readMark, for: reader, body)
    }

    /// Returns a message as a frame's body. If the content does not fit, its ``StandIn`` replaces it.
    ///
    /// - Parameter maxBytes: the largest size of the body, in bytes. The default is for a message that has its own
    ///   frame.
    static func base(
        _ message: Message,
        seq: UInt64,
        reader: Principal,
        maxBytes: Int = IMPBFrame.maxBodyBytes - 16
    ) -> IMPB_base_msg {
        switch message.conversation {
        case .group(let group):
            var body = IMPB_Group_msg()
            body.groupID = group.rawValue
            return base(.group, body, message, seq: seq, reader: reader, maxBytes: maxBytes)
        case .direct:
            var body = IMPB_C2C_msg()
            let receiver = message.conversation.peer(of: message.sender) ?? reader.user
            body.to = receiver.rawValue
            body.toInfo.uid = UInt32(receiver.rawValue)
            if receiver == reader.user { body.toInfo.nickName = reader.nickName.rawValue }
            return base(.c2C, body, message, seq: seq, reader: reader, maxBytes: maxBytes)
        }
    }

    private static func base(
        _ type: IMPB_base_msg.TypeEnum,
        _ addressed: some IMPBChatMessage,
        _ message: Message,
        seq: UInt64,
        reader: Principal,
        maxBytes: Int
    ) -> IMPB_base_msg {
        var body = addressed
        body.from = message.sender.rawValue
        body.fromInfo.uid = UInt32(message.sender.rawValue)
        body.fromInfo.nickName = message.senderName
        body.messageID = message.id.description
        body.serverTime = message.sentAt.rawValue
        body.seq = seq
        if message.sender == reader.user { body.clientID = message.clientID ?? "" }
        if !message.isRecalled { IMPBContent.fill(&body, with: message.content) }
        var base = base(type, body)
        if base.body.count > maxBytes {
            let standIn = StandIn(for: CanonicalContent.parsed(message.content), bytes: message.content.bytes.count)
            IMPBContent.fill(&body, with: standIn.content)
            base = self.base(type, body)
        }
        return base
    }

    private static func base(_ type: IMPB_base_msg.TypeEnum, _ body: some IMPBChatMessage) -> IMPB_base_msg {
        var base = IMPB_base_msg()
        base.type = type
        // This cannot fail, because the message has no required fields.
        if let bytes: [UInt8] = try? body.wireBytes() { base.body = protobufBytes(bytes) }
        return base
    }

    /// Returns the notification for a back end's command. The application defines the body.
    static func command(_ payload: [UInt8], for user: UserID) -> IMPB_Notification_msg {
        var notification = IMPB_Notification_msg()
        notification.type = .cmd
        notification.targetUid = UInt32(user.rawValue)
        notification.body = protobufBytes(payload)
        return notification
    }

    static func conversation(_ conversation: ConversationID, reader: UserID) -> IMPB_Conversation_id {
        var answer = IMPB_Conversation_id()
        switch conversation {
        case .direct(let low, _): answer.uid = UInt32((conversation.peer(of: reader) ?? low).rawValue)
        case .group(let group): answer.groupID = UInt32(group.rawValue)
        }
        return answer
    }

    static func notification(
        _ type: IMPB_Notification_msg.TypeEnum,
        for user: UserID,
        _ body: some WireMessage
    ) -> IMPB_Notification_msg {
        var notification = IMPB_Notification_msg()
        notification.type = type
        notification.targetUid = UInt32(user.rawValue)
        // This cannot fail, because the notifications have no required fields.
        if let bytes: [UInt8] = try? body.wireBytes() { notification.body = protobufBytes(bytes) }
        return notification
    }
}
