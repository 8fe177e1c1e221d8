// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates between the core and `hermes.v1`.
enum NativeTranslation {
    /// The time over which clients spread their reconnects after a shutdown, in milliseconds. It prevents all clients
    /// from reconnecting at once.
    static let reconnectWindow: UInt32 = 15_000

    static func error(_ error: HermesError) -> Hermes_V1_Error {
        var answer = Hermes_V1_Error()
        answer.code = error.code.rawValue
        answer.message = error.message
        if let wait = error.retryAfterMilliseconds { answer.retryAfterMs = wait }
        return answer
    }

    static func session(_ login: Login, now: Timestamp) -> Hermes_V1_Session {
        var session = Hermes_V1_Session()
        session.uid = UInt32(login.principal.user.rawValue)
        session.nickName = login.principal.nickName.rawValue
        session.token = login.token ?? ""
        session.epoch = login.position.epoch
        session.headSeq = login.position.head
        session.serverTimeMs = now.rawValue
        return session
    }

    /// - Throws: `.notFound` for a uid that no account can have; the errors of ``NickName``.
    static func accountKey(
        _ selector: Hermes_V1_AccountSelector,
        own: UserID
    ) throws(HermesError) -> AccountKey {
        switch selector.selector {
        case .uid(let uid): return .id(try RequestedIDs.user(uid))
        case .nickName(let name): return .nickName(try NickName(name))
        case nil: return .id(own)
        }
    }

    static func account(_ account: Account, isOnline: Bool, isOwn: Bool) -> Hermes_V1_Account {
        var answer = Hermes_V1_Account()
        answer.uid = UInt32(account.id.rawValue)
        answer.nickName = account.nickName.rawValue
        answer.avatarURL = account.avatarURL
        answer.isOnline = isOnline
        if isOwn { answer.createdAtMs = account.createdAt.rawValue }
        return answer
    }

    static func devices(_ devices: [Device], online: Set<DeviceID>, current: DeviceID) -> Hermes_V1_DeviceList {
        var list = Hermes_V1_DeviceList()
        list.devices = devices.map { device in
            var answer = Hermes_V1_Device()
            answer.id = device.description.id.rawValue
            answer.name = device.description.name
            answer.platform = device.description.platform
            answer.appVersion = device.description.appVersion
            answer.isOnline = online.contains(device.description.id)
            answer.lastSeenMs = device.lastSeenAt.rawValue
            answer.acknowledgedSeq = device.cursor
            answer.isCurrent = device.description.id == current
            return answer
        }
        return list
    }

    static func receipt(_ receipt: SendReceipt) -> Hermes_V1_Receipt {
        var answer = Hermes_V1_Receipt()
        answer.messageID = receipt.messageID.description
        answer.clientID = receipt.clientID ?? ""
        answer.conversationSeq = receipt.conversationSeq
        answer.inboxSeq = receipt.inboxSeq
        answer.serverTimeMs = receipt.sentAt.rawValue
        answer.duplicate = receipt.isDuplicate
        return answer
    }

    static func ephemeral(_ event: EphemeralEvent, reader: UserID) -> Hermes_V1_Ephemeral? {
        var answer = Hermes_V1_Ephemeral()
        switch event {
        case .typing(let conversation, let user, let stopped):
            answer.typing.conversation = Hermes_V1_Conversation(conversation, reader: reader)
            answer.typing.uid = UInt32(user.rawValue)
            answer.typing.stopped = stopped
        case .presence(let user, let isOnline, let lastSeen):
            answer.presence.uid = UInt32(user.rawValue)
            answer.presence.isOnline = isOnline
            answer.presence.lastSeenMs = lastSeen?.rawValue ?? 0
        case .signal(let user, let device, let payload):
            guard let signal = try? Hermes_V1_Signal(wire: payload) else { return nil }
            answer.signal.fromUid = UInt32(user.rawValue)
            answer.signal.fromDeviceID = device.rawValue
            answer.signal.signal = signal
        case .command:
            return nil
        }
        return answer
    }

    /// Returns the last packet of a connection that ends for this reason; nil if there is none.
    static func kicked(_ reason: CloseReason) -> Hermes_V1_Kicked? {
        var kicked = Hermes_V1_Kicked()
        kicked.code = reason.code
        switch reason {
        case .goodbye, .finished, .loginRefused: return nil
        case .malformed(let error):
            kicked.reason = .protocol
            kicked.message = error.message
        case .notAuthenticated:
            kicked.reason = .timeout
            kicked.message = "not authenticated in time"
        case .tokenExpired:
            kicked.reason = .revoked
            kicked.message = "the token has expired; log in with a new one"
        case .loginBudget:
            kicked.reason = .limit
            kicked.message = "too many bytes were sent before logging in; try again later"
        case .idle:
            kicked.reason = .timeout
            kicked.message = "the client was silent for too long; send a ping more often"
        case .slowReader:
            kicked.reason = .limit
            kicked.message = "the client did not read its messages"
        case .memory:
            kicked.reason = .limit
            kicked.message = CloseReason.memoryText
        case .rateLimited:
            kicked.reason = .limit
            kicked.message = CloseReason.rateText
        case .attachment(.replaced):
            kicked.reason = .replaced
            kicked.message = "the same device connected again"
        case .attachment(.accountDisabled):
            kicked.reason = .disabled
            kicked.message = CloseReason.disabledText
        case .attachment(.accountDeleted):
            kicked.reason = .disabled
            kicked.message = CloseReason.deletedText
        case .attachment(.accountRenamed):
            kicked.reason = .revoked
            kicked.message = "the account has another name; log in again"
        case .attachment(.revoked):
            kicked.reason = .revoked
            kicked.message = "the token was revoked; log in again"
        case .attachment(.shuttingDown), .shuttingDown:
            kicked.reason = .shutdown
            kicked.message = CloseReason.stoppingText
            kicked.reconnect.windowMs = reconnectWindow
        }
        return kicked
    }
}
