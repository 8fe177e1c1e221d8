// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesWire
import NIOCore
import SwiftProtobuf

/// The IMPB protocol: requests and their replies, chat messages, and notifications.
struct IMPBLink: ConnectionLink {
    typealias Decoder = IMPBFrameDecoder
    typealias Login = IMPBLogin

    enum Request: Sendable {
        case request(IMPB_Common)
        case message(IMPB_base_msg)
    }

    /// The field `respon` of the reply.
    typealias Answer = [UInt8]

    struct Event: Sendable {
        /// The epoch to which the seq belongs.
        var epoch: UInt64
        /// The entry's seq; 0 if the event is not an inbox entry.
        var seq: UInt64
        /// The number of the inbox. A seq of one inbox has no meaning in another inbox.
        var incarnation: UInt64 = 0
        var event: IMPBEvent
        /// The length of the body of the frame that carried the event, in bytes.
        var bytes = 0
    }

    private enum ID {
        static let login: UInt64 = 1
        static let heartbeat: UInt64 = 2
        static let registration: UInt64 = 3
        static let pull: UInt64 = 4
        static let acknowledgement: UInt64 = 5
    }

    let maxFrameBytes = IMPBFrame.maxBodyBytes
    let configuration: IMPBClient.Configuration
    var credential: Credential?
    private var uid: UInt32 = 0
    /// Whether a registration was sent and its answer has not arrived. If so, the account may exist.
    private var registerIsUnanswered = false
    private var mayBeRegistered = false
    /// Whether a login is unanswered.
    private var isAuthenticating = false
    private var strayLogins = StrayLogins()
    /// The ids of messages whose receipts are awaited.
    private var sending: Set<UInt64> = []
    private var inbox = InboxTracker<IMPBEvent>()
    /// The seq up to which no further entry will arrive on the present connection unless the client pulls. The server
    /// sends the entries in order and begins after the last one that it has recorded as acknowledged.
    private var passed: UInt64 = 0
    /// The number of the present inbox; see ``Event/incarnation``.
    private var incarnation: UInt64 = 0
    /// The credential that the app last passed. ``credential`` may instead be the token that the server issued for it.
    private var requested: Credential?
    private var backlog = 0
    private var backlogBytes = 0
    /// The length of the body of the present frame, in bytes.
    private var frameBytes = 0
    private var outputs: [InboxTracker<IMPBEvent>.Output] = []

    init(_ configuration: IMPBClient.Configuration) { self.configuration = configuration }

    // MARK: Logging in

    /// Sets the credential with which the app logs in, perhaps to another account.
    mutating func logIn(_ new: Credential) {
        if new != requested { mayBeRegistered = false }
        credential = new
        requested = new
    }

    /// Whether a credential is the credential that the app last passed, or the token that the server issued for it.
    func isLoggedIn(with credential: Credential) -> Bool { credential == requested || credential == self.credential }

    mutating func connected(effects: inout Effects) throws {
        guard let credential else { throw HermesClientError(.closed, "log in first") }
        isAuthenticating = false
        switch credential {
        case .register(let nickName, let password, let invitation):
            var request = IMPB_signin_request()
            request.nickName = nickName
            request.pwd = password
            request.invitation = invitation
            registerIsUnanswered = true
            effects.append(.send(try .user(.signIn, request), id: ID.registration))
        case .password(let nickName, let password):
            try logIn(nickName, password: password, effects: &effects)
        case .token(let token):
            try logIn("", token: token, effects: &effects)
        }
    }

    private mutating func logIn(
        _ nickName: String,
        password: String = "",
        token: String = "",
        effects: inout Effects
    ) throws {
        var request = IMPB_login_request()
        request.nickName = nickName
        request.pwd = password
        request.token = token
        request.ip = configuration.localHost
        request.port = Int32(clamping: configuration.localPort)
        request.deviceName = configuration.device.name
        request.deviceID = configuration.device.id
        request.version = configuration.device.appVersion
        strayLogins.began()
        isAuthenticating = true
        effects.append(.send(try .user(.login, request), id: ID.login))
    }

    mutating func becameLive(now: NIODeadline, effects: inout Effects) {
        // Until a client acknowledges for the first time, the server treats each of the client's frames as an
        // acknowledgement of everything that the server has sent. So this request is sent before all others.
        guard configuration.acknowledgement == .explicit, inbox.epoch != 0 else { return }
        // This cannot fail, because the request has no required fields.
        guard let acknowledgement = try? Request.acknowledgement(upTo: inbox.taken) else { return }
        effects.append(.send(acknowledgement, id: ID.acknowledgement))
    }

    // MARK: Frames

    mutating func received(_ frame: IMPBFrame, now: NIODeadline, effects: inout Effects) throws {
        frameBytes = frame.body.readableBytes
        switch frame.type {
        case .ping:
            return
        case .request:
            let reply = try IMPB_CommonRespon(wire: frame.body, maxParts: nil)
            try replied(reply, id: UInt64(frame.seq), now: now, effects: &effects)
        case .message:
            messaged(try IMPB_base_msg(wire: frame.body, maxParts: nil), now: now, effects: &effects)
        case .notification:
            notified(try IMPB_Notification_msg(wire: frame.body, maxParts: nil), now: now, effects: &effects)
        default:
            // This is a frame of a newer version, so it is ignored.
            return
        }
    }

    private mutating func replied(
        _ reply: IMPB_CommonRespon,
        id: UInt64,
        now: NIODeadline,
        effects: inout Effects
    ) throws {
        switch id {
        case ID.registration: try registrationReplied(reply, effects: &effects)
        case ID.login: try loginReplied(reply, now: now, effects: &effects)
        case ID.pull: try pullReplied(reply, now: now, effects: &effects)
        case 16...: try requestReplied(reply, id: id, now: now, effects: &effects)
        default: return
        }
    }

    private mutating func registrationReplied(_ reply: IMPB_CommonRespon, effects: inout Effects) throws {
        guard registerIsUnanswered else { return }
        registerIsUnanswered = false
        guard case .register(let nickName, let password, _) = credential else { return }
        guard reply.isSuc || mayBeRegistered && HermesClientError(reply).code == .nameTaken else {
            mayBeRegistered = false
            return effects.append(.refused(HermesClientError(reply)))
        }
        mayBeRegistered = true
        // The reply has a token, but the client logs in, because only a login tells the server about the device.
        try logIn(nickName, password: password, effects: &effects)
    }

    private mutating func loginReplied(_ reply: IMPB_CommonRespon, now: NIODeadline, effects: inout Effects) throws {
        // Each login has one answer; further answers are ignored.
        guard isAuthenticating else { return }
        isAuthenticating = false
        strayLogins.answered()
        guard reply.isSuc else { return effects.append(.refused(HermesClientError(reply))) }
        let login = try IMPB_login_response(wire: [UInt8](reply.respon), maxParts: nil)
        if uid != 0, uid != login.uid {
            inbox = InboxTracker()
            incarnation &+= 1
            effects.append(.forgetEvents)
        }
        uid = login.uid
        passed = min(login.acknowledgedSeq, .max - 1)
        mayBeRegistered = false
        if !login.token.isEmpty { credential = .token(login.token) }
        let resumption = inbox.resumed(
            epoch: login.epoch,
            serverAcknowledged: login.acknowledgedSeq,
            head: login.headSeq,
            now: now
        )
        switch resumption {
        case .goesOn: break
        case .newInbox, .rewound:
            incarnation &+= 1
            effects.append(.event(Event(epoch: 0, seq: 0, event: .inboxReset)))
        }
        var token = ""
        if case .token(let known) = credential { token = known }
        effects.append(.authenticated(IMPBLogin(uid: UserID(rawValue: login.uid), token: token)))
    }

    private mutating func pullReplied(_ reply: IMPB_CommonRespon, now: NIODeadline, effects: inout Effects) throws {
        guard reply.isSuc else { return }
        let answer = try IMPB_pull_response(wire: [UInt8](reply.respon), maxParts: nil)
        inbox.synchronized(
            epoch: answer.epoch,
            head: answer.headSeq,
            oldest: answer.oldestSeq,
            now: now,
            output: &outputs
        )
        try drain(&effects)
    }

    private mutating func requestReplied(
        _ reply: IMPB_CommonRespon,
        id: UInt64,
        now: NIODeadline,
        effects: inout Effects
    ) throws {
        let wasMessage = sending.remove(id) != nil
        guard reply.isSuc else { return effects.append(.answer(id: id, .failure(HermesClientError(reply)))) }
        if wasMessage,
            let receipt = try? IMPB_Message_receipt(wire: [UInt8](reply.respon), maxParts: nil), receipt.seq > 0
        {
            // The client's own message is also an entry of the inbox, but this device gets only the receipt for it.
            inbox.arrived(nil, seq: receipt.seq, to: receipt.seq, now: now, output: &outputs)
            try drain(&effects)
        }
        effects.append(.answer(id: id, .success([UInt8](reply.respon))))
    }

    private mutating func messaged(_ message: IMPB_base_msg, now: NIODeadline, effects: inout Effects) {
        if message.type == .broadcast {
            guard let told = try? IMPB_C2C_msg(wire: [UInt8](message.body), maxParts: nil) else { return }
            let content = MessageContent(told.type, [UInt8](told.content))
            let author = UserID(rawValue: UInt32(clamping: told.from))
            return arrived(.broadcast(content: content, fromUID: author), seq: 0, now: now, effects: &effects)
        }
        guard let received = IMPBMessage(message, ownUID: uid) else { return }
        arrived(.message(received), seq: received.inboxSeq, now: now, effects: &effects)
    }

    private mutating func notified(_ notification: IMPB_Notification_msg, now: NIODeadline, effects: inout Effects) {
        if notification.type == .kicked {
            let kicked = (try? IMPB_kicked_notification(wire: [UInt8](notification.body), maxParts: nil)) ?? .init()
            let error = HermesClientError(ending: kicked.code, kicked.reason)
            // Codes from 3000 and a missing code (0) are temporary. After a 1001, for example because no ping arrived
            // in time, the answer to the next login decides. All other codes are permanent.
            let isTemporary =
                kicked.code == 0 || kicked.code >= 3000 || kicked.code == HermesClientError.notAuthenticatedOnServer
            let mayReturn = error.code == .replaced ? strayLogins.blame() : isTemporary
            effects.append(.kicked(error, mayReturn: mayReturn, advice: nil))
            return
        }
        var to = notification.seq
        if notification.type == .expired,
            let expired = try? IMPB_expired_notification(wire: [UInt8](notification.body), maxParts: nil)
        {
            to = max(to, expired.toSeq)
        }
        let event = Self.isForAnotherDevice(notification) ? nil : IMPBEvent(notification)
        arrived(event, seq: notification.seq, to: to, now: now, effects: &effects)
    }

    /// Whether an entry has a seq on this device, but shows nothing, because its event in the native schema is empty.
    private static func isForAnotherDevice(_ notification: IMPB_Notification_msg) -> Bool {
        guard notification.type == .event, notification.seq > 0,
            let told = try? Hermes_V1_Event(wire: [UInt8](notification.body), maxParts: nil)
        else { return false }
        return told.event == nil && told.unknownFields.data.isEmpty
    }

    /// Handles an event that has arrived; nil stands for an entry that is not for the app. A seq of 0 means that the
    /// event is not stored, or that the server does not number its entries.
    private mutating func arrived(
        _ event: IMPBEvent?,
        seq: UInt64,
        to: UInt64? = nil,
        now: NIODeadline,
        effects: inout Effects
    ) {
        guard seq > 0 else {
            // The client does not request such events again, so it drops the events above the limits. No other limit
            // applies to them.
            guard let event, backlog < Backlog.maxEphemeral, backlogBytes < Backlog.maxBytes else { return }
            return effects.append(.event(Event(epoch: 0, seq: 0, event: event, bytes: frameBytes)))
        }
        passed = max(passed, seq - 1)
        inbox.arrived(event, seq: seq, to: to ?? seq, bytes: frameBytes, now: now, output: &outputs)
        try? drain(&effects)
    }

    // MARK: Writing

    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws {
        let seq = UInt32(truncatingIfNeeded: id)
        switch request {
        case .request(let common): try IMPBFrame.write(common, seq: seq, type: .request, into: &buffer)
        case .message(let message):
            try IMPBFrame.write(message, seq: seq, type: .message, into: &buffer)
            if id >= 16 { sending.insert(id) }
        }
    }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        try IMPBFrame(seq: UInt32(ID.heartbeat), type: .ping).write(into: &buffer)
    }

    mutating func lost() {
        mayBeRegistered = mayBeRegistered || registerIsUnanswered
        registerIsUnanswered = false
        sending = []
        inbox.lost()
        strayLogins.connectionLost()
    }

    mutating func closing(effects: inout Effects) {
        inbox.acknowledgeNow(output: &outputs)
        try? drain(&effects)
    }

    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {
        // An event without a valid seq marks no entry as taken. But the tracker may have room again for the entries
        // that it has dropped.
        let isCurrent = event.epoch == inbox.epoch && event.incarnation == incarnation
        inbox.taken(seq: isCurrent ? event.seq : 0, now: now, output: &outputs)
        skipHole(now: now)
        try? drain(&effects)
    }

    func bytes(of event: Event) -> Int { event.bytes }

    mutating func backlogChanged(_ count: Int, bytes: Int) {
        backlog = count
        backlogBytes = bytes
        if bytes > Backlog.maxBytes || count > Backlog.maxEvents { inbox.isFull = true }
        if bytes < Backlog.maxBytes / 4, count < Backlog.maxEvents / 4 { inbox.isFull = false }
    }

    var nextDeadline: NIODeadline? { inbox.nextDeadline }

    mutating func deadlineReached(now: NIODeadline, effects: inout Effects) {
        inbox.deadlineReached(now: now, output: &outputs)
        skipHole(now: now)
        try? drain(&effects)
    }

    /// Reports the missing entries up to `passed` as missed, if the tracker asks for them and the client acknowledges
    /// implicitly. Such a client cannot pull: after a pull, its other frames would acknowledge nothing.
    private mutating func skipHole(now: NIODeadline) {
        guard configuration.acknowledgement == .implicit else { return }
        guard outputs.contains(where: { if case .synchronize = $0 { true } else { false } }) else { return }
        inbox.synchronized(epoch: inbox.epoch, head: 0, oldest: passed + 1, now: now, output: &outputs)
    }

    private mutating func drain(_ effects: inout Effects) throws {
        defer { outputs.removeAll(keepingCapacity: true) }
        for output in outputs {
            switch output {
            case .deliver(let seq, let event):
                // After a hole, the event may be from an earlier frame of another length. The length is only used for a
                // limit, so it need not be exact.
                effects.append(
                    .event(
                        Event(
                            epoch: inbox.epoch,
                            seq: seq,
                            incarnation: incarnation,
                            event: event,
                            bytes: frameBytes
                        )
                    )
                )
            case .missed(let range):
                let count = range.upperBound &- range.lowerBound &+ 1
                let missed = IMPBEvent.missed(count: count)
                effects.append(
                    .event(
                        Event(epoch: inbox.epoch, seq: range.upperBound, incarnation: incarnation, event: missed)
                    )
                )
            case .synchronize(let afterSeq):
                guard configuration.acknowledgement == .explicit else { continue }
                var request = IMPB_pull_request()
                request.afterSeq = afterSeq
                effects.append(.send(try .inbox(.pull, request), id: ID.pull))
            case .acknowledge(let upToSeq):
                guard configuration.acknowledgement == .explicit else { continue }
                effects.append(.send(try .acknowledgement(upTo: upToSeq), id: ID.acknowledgement))
            }
        }
    }
}

extension IMPBLink.Request {
    static func user(_ command: IMPB_User_msg.Cmd, _ body: some SwiftProtobuf.Message) throws -> Self {
        var message = IMPB_User_msg()
        message.cmd = command
        message.body = try body.wireBytes()
        return try common(.user, message)
    }

    static func inbox(_ command: IMPB_Message_msg.Cmd, _ body: some SwiftProtobuf.Message) throws -> Self {
        var message = IMPB_Message_msg()
        message.cmd = command
        message.body = try body.wireBytes()
        return try common(.message, message)
    }

    static func acknowledgement(upTo seq: UInt64) throws -> Self {
        var request = IMPB_ack_request()
        request.upToSeq = seq
        return try inbox(.ack, request)
    }

    static func peer(_ type: IMPB_p2p_connect.TypeEnum, _ body: some SwiftProtobuf.Message) throws -> Self {
        var message = IMPB_p2p_connect()
        message.type = type
        message.body = try body.wireBytes()
        return try common(.p2PConnect, message)
    }

    private static func common(_ method: IMPB_Common.Method, _ body: some SwiftProtobuf.Message) throws -> Self {
        var common = IMPB_Common()
        common.method = method
        common.body = try body.wireBytes()
        return .request(common)
    }
}

extension HermesClientError {
    /// The server's code for an end of the connection after which the client may log in again. An example is a
    /// connection that ended because no heartbeat arrived in time.
    static let notAuthenticatedOnServer: UInt32 = 1001

    init(_ reply: IMPB_CommonRespon) {
        self.init(
            Code(rawValue: reply.error.code),
            reply.error.msg.isEmpty ? "the server refused without saying why" : reply.error.msg,
            retryAfter: reply.error.retryAfterMs == 0 ? nil : .milliseconds(Int64(reply.error.retryAfterMs))
        )
    }
}
