// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The native protocol: Packets in Delimited frames.
struct DelimitedLink: ConnectionLink {
    typealias Decoder = DelimitedFrameDecoder
    typealias Request = Hermes_V1_Packet.OneOf_Body
    typealias Login = Session

    enum Answer: Sendable {
        case result(Hermes_V1_Result)
        case pong(Hermes_V1_Pong)
    }

    struct Event: Sendable {
        /// The epoch that the seq belongs to.
        var epoch: UInt64
        /// The entry's seq; 0 where the event is not of the inbox.
        var seq: UInt64
        var event: InboxEvent
        /// The entry as it came; nil where it is not kept.
        var source: Hermes_V1_Event?
    }

    /// An entry of the inbox.
    struct Entry: Sendable {
        var event: InboxEvent
        /// When the server committed it, in milliseconds since 1970.
        var serverTime: Int64
        var source: Hermes_V1_Event?
    }

    /// Packets that the link itself awaits answers for.
    private enum ID {
        static let authentication: UInt64 = 1
        static let heartbeat: UInt64 = 2
        static let presence: UInt64 = 3
        static let synchronize: UInt64 = 4
        static let room: UInt64 = 5
        static let statistics: UInt64 = 6
    }

    let maxFrameBytes: Int
    let device: DeviceDescription
    var credential: Credential?
    /// A register went out whose answer was not seen: the account may exist.
    private var mayBeRegistered = false
    private var registerIsUnanswered = false
    private(set) var inbox: InboxTracker<Entry>
    /// Whose the inbox is, where that is known before the login.
    private var owner: UInt32?
    /// The credential is the owner's, so that the server may be told where the inbox stands.
    private var isOwnerCertain = true
    /// Events keep the entry as it came.
    private var keepsSources = false
    /// The client ids of sends whose receipts are awaited, by packet id.
    private var sending: [UInt64: String] = [:]
    /// The client ids of what is in the outbox.
    var outgoing: Set<String> = []
    var statistics: LinkStatistics
    /// When the login was sent, by the device's clock in milliseconds since 1970.
    private var askedAt: Int64 = 0
    private var strayLogins = StrayLogins() {
        didSet { if strayLogins.unanswered != oldValue.unanswered { keepLogins?(strayLogins.unanswered) } }
    }
    /// Keeps them for the next run of the app.
    private var keepLogins: (@Sendable ([Int64]) -> Void)?
    /// Given by the server with its advice to reconnect; for the next login.
    private var ticket: [UInt8] = []
    /// Rooms whose enter is unanswered, by packet id.
    private var entering: [UInt64: (room: String, user: RoomUser)] = [:]
    /// Entered on the next connection again.
    private var rooms: [String: RoomUser] = [:]
    /// Where the numbers of pushes to rooms stand.
    private var topics = TopicTracker()
    /// Watched on the next connection again.
    private var watched: Set<UInt32> = []
    /// The server hands messages to the push service at once while the app is not in front of its user.
    private var appState = DeviceConditions.AppState.foreground
    private var outputs: [InboxTracker<Entry>.Output] = []

    /// At most so many events wait that matter only now; newer ones are dropped.
    private static let maxEphemeralBacklog = 8192
    private var backlog = 0

    init(device: DeviceDescription, cursor: Cursor?, maxFrameBytes: Int, statisticsInterval: Duration?) {
        self.device = device
        statistics = LinkStatistics(interval: statisticsInterval, appVersion: device.appVersion)
        self.maxFrameBytes = maxFrameBytes
        inbox = InboxTracker(epoch: cursor?.epoch ?? 0, taken: cursor?.seq ?? 0)
    }

    /// The app logs in, perhaps as somebody else than before.
    mutating func logIn(_ new: Credential) {
        if owner != nil, new != credential { isOwnerCertain = false }
        credential = new
    }

    /// The inbox goes on where an earlier run of the app left it.
    ///
    /// - Parameters:
    ///   - cursor: up to where the app took it; nil: unknown.
    ///   - owner: whose inbox that was; nil: unknown.
    ///   - isCertain: whether the credential is the owner's. If not, that shows after the login.
    mutating func resume(_ cursor: Cursor?, of owner: UInt32?, isCertain: Bool) {
        keepsSources = true
        self.owner = owner
        isOwnerCertain = isCertain
        if let cursor, inbox.epoch == 0 { inbox = InboxTracker(epoch: cursor.epoch, taken: cursor.seq) }
    }

    /// Logins of an earlier run of the app may be on their way still.
    ///
    /// - Parameters:
    ///   - logins: see ``StrayLogins/unanswered``.
    ///   - keep: keeps those of this run for the next one.
    mutating func remember(unanswered logins: [Int64], keep: @escaping @Sendable ([Int64]) -> Void) {
        strayLogins = StrayLogins(unanswered: logins)
        keepLogins = keep
    }

    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = request
        try DelimitedFrame.write(packet, into: &buffer)
        remember(request, id: id)
    }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        var ping = Hermes_V1_Ping()
        ping.clientTimeMs = WallClock.milliseconds()
        try write(.ping(ping), id: ID.heartbeat, into: &buffer)
    }

    mutating func connected(effects: inout Effects) throws {
        guard let credential else { throw HermesClientError(.closed, "log in first") }
        askedAt = WallClock.milliseconds()
        strayLogins.began()
        switch credential {
        case .register(let nickName, let password, let invitation):
            var register = Hermes_V1_Register()
            register.invitation = invitation
            register.nickName = nickName
            register.password = password
            register.device = describedDevice
            effects.append(.send(.register(register), id: ID.authentication))
        case .password(let nickName, let password):
            effects.append(authenticate { $0.password = Self.wire(nickName, password) })
        case .token(let token):
            effects.append(authenticate { $0.token = token })
        }
    }

    mutating func becameLive(now: NIODeadline, effects: inout Effects) {
        statistics.becameLive(now: now)
        for (room, user) in rooms {
            var request = Hermes_V1_RoomRequest()
            request.room = room
            request.enter.user = user.wire
            effects.append(.send(.room(request), id: ID.room))
        }
        guard !watched.isEmpty || appState != .foreground else { return }
        var request = Hermes_V1_PresenceRequest()
        request.watchUids = watched.sorted()
        // What a server takes for granted is not said.
        if appState != .foreground { request.appState = appState.wire }
        effects.append(.send(.presence(request), id: ID.presence))
    }

    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects) {
        guard state != appState else { return }
        appState = state
        guard isLive else { return }
        var request = Hermes_V1_PresenceRequest()
        request.appState = state.wire
        effects.append(.send(.presence(request), id: ID.presence))
    }

    mutating func received(_ frame: DelimitedFrame, now: NIODeadline, effects: inout Effects) throws {
        let packet = try frame.packet()
        switch packet.body {
        case .result(let result):
            if packet.id < 16 {
                answered(result, id: packet.id, now: now, effects: &effects)
            } else {
                finished(result, id: packet.id, now: now, effects: &effects)
            }
        case .event(let event):
            arrived(event, now: now, effects: &effects)
        case .ephemeral(let ephemeral):
            guard backlog < Self.maxEphemeralBacklog, let event = InboxEvent(ephemeral) else { return }
            if case .room(let room) = ephemeral.event { track(room, effects: &effects) }
            effects.append(.event(Event(epoch: 0, seq: 0, event: event)))
        case .notice(let notice):
            noticed(notice, effects: &effects)
        case .kicked(let kicked):
            if kicked.hasReconnect { keepTicket(kicked.reconnect) }
            effects.append(self.kicked(kicked))
        case .pong(let pong):
            if pong.clientTimeMs != 0 {
                statistics.clock.answered(
                    askedAt: pong.clientTimeMs,
                    answeredAt: WallClock.milliseconds(),
                    serverTime: pong.serverTimeMs
                )
            }
            if packet.id >= 16 { effects.append(.answer(id: packet.id, .success(.pong(pong)))) }
        case .register, .authenticate, .send, .acknowledge, .synchronize, .markRead, .typing, .recall, .contact,
            .group, .presence, .room, .device, .signal, .statistics, .ping, .account, .logOut, .history:
            throw HermesClientError(.protocolViolation, "the server sent what only clients send")
        case nil:
            // A body of a newer version: not for us.
            return
        }
    }

    mutating func lost() {
        mayBeRegistered = mayBeRegistered || registerIsUnanswered
        registerIsUnanswered = false
        sending = [:]
        entering = [:]
        statistics.lost()
        strayLogins.connectionLost()
    }

    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath) {
        statistics.counter.ended(end, in: network.kind, date: WallClock.milliseconds())
    }

    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat) {
        statistics.counter.entered(network.kind)
        statistics.counter.learned(heartbeat, date: WallClock.milliseconds())
    }

    mutating func closing(effects: inout Effects) {
        inbox.acknowledgeNow(output: &outputs)
        drain(&effects)
    }

    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {
        guard event.seq > 0, event.epoch == inbox.epoch else { return }
        inbox.taken(seq: event.seq, now: now, output: &outputs)
        drain(&effects)
    }

    mutating func backlogChanged(_ count: Int, now: NIODeadline, effects: inout Effects) { backlog = count }

    var nextDeadline: NIODeadline? {
        [inbox.nextDeadline, statistics.uploadAt].compactMap { $0 }.min()
    }

    mutating func deadlineReached(now: NIODeadline, effects: inout Effects) {
        if let report = statistics.deadlineReached(now: now) {
            effects.append(.send(.statistics(report), id: ID.statistics))
        }
        inbox.deadlineReached(now: now, output: &outputs)
        drain(&effects)
    }
}

extension DelimitedLink {
    private static func wire(_ nickName: String, _ password: String) -> Hermes_V1_PasswordCredential {
        var credential = Hermes_V1_PasswordCredential()
        credential.nickName = nickName
        credential.password = password
        return credential
    }

    private func authenticate(_ fill: (inout Hermes_V1_Authenticate) -> Void) -> LinkEffect<Self> {
        var request = Hermes_V1_Authenticate()
        fill(&request)
        request.device = describedDevice
        request.ticket = .init(ticket)
        // Told with another account's login, it would take entries away from that account.
        request.epoch = isOwnerCertain ? inbox.epoch : 0
        request.acknowledgedSeq = isOwnerCertain ? inbox.taken : 0
        return .send(.authenticate(request), id: ID.authentication)
    }

    private var describedDevice: Hermes_V1_DeviceDescription {
        var description = device.wire
        description.networkLabel = statistics.counter.kind
        return description
    }

    /// Keeps what has to be said again on the next connection.
    private mutating func remember(_ request: Request, id: UInt64) {
        switch request {
        case .send(let send):
            sending[id] = send.clientID
        case .register:
            registerIsUnanswered = true
        case .room(let request):
            switch request.request {
            case .enter(let enter): entering[id] = (request.room, RoomUser(enter.user))
            case .leave:
                rooms[request.room] = nil
                topics.forget(request.room)
            case .text, .gift, .custom, nil: break
            }
        case .presence(let request):
            watched.formUnion(request.watchUids)
            watched.subtract(request.unwatchUids)
        default:
            // Nothing of the others outlives its connection.
            break
        }
    }

    /// A packet of the link's own was answered.
    private mutating func answered(
        _ result: Hermes_V1_Result,
        id: UInt64,
        now: NIODeadline,
        effects: inout Effects
    ) {
        switch id {
        case ID.authentication:
            authenticationAnswered(result, now: now, effects: &effects)
        case ID.statistics:
            statistics.answered(result)
        case ID.presence:
            for presence in result.presence.presences {
                effects.append(.event(Event(epoch: 0, seq: 0, event: .presence(Presence(presence)))))
            }
        case ID.synchronize:
            guard case .synchronized(let answer) = result.value else { return }
            inbox.synchronized(
                epoch: answer.epoch,
                head: answer.headSeq,
                oldest: answer.oldestSeq,
                now: now,
                output: &outputs
            )
            drain(&effects)
        default:
            // 0: a failure of what wanted no answer.
            return
        }
    }

    private mutating func authenticationAnswered(
        _ result: Hermes_V1_Result,
        now: NIODeadline,
        effects: inout Effects
    ) {
        registerIsUnanswered = false
        strayLogins.answered()
        guard !result.hasError, case .session(let session) = result.value else {
            let error = HermesClientError(result.error)
            if case .register(let nickName, let password, _) = credential {
                if error.code == .nameTaken, mayBeRegistered {
                    credential = .password(nickName: nickName, password: password)
                    strayLogins.began()
                    effects.append(authenticate { $0.password = Self.wire(nickName, password) })
                    return
                }
                mayBeRegistered = false
            }
            effects.append(.refused(error))
            return
        }
        if !session.token.isEmpty { credential = .token(session.token) }
        ticket = []
        statistics.clock.answered(
            askedAt: askedAt,
            answeredAt: WallClock.milliseconds(),
            serverTime: session.serverTimeMs
        )
        let isOther = owner.map { $0 != session.uid } ?? false
        if isOther { inbox = InboxTracker() }
        owner = session.uid
        isOwnerCertain = true
        if inbox.epoch != 0, inbox.epoch != session.epoch {
            effects.append(.event(Event(epoch: 0, seq: 0, event: .inboxReset)))
        }
        inbox.resumed(
            epoch: session.epoch,
            serverAcknowledged: session.acknowledgedSeq,
            head: session.headSeq,
            now: now
        )
        var token = ""
        if case .token(let known) = credential { token = known }
        effects.append(
            .authenticated(
                Session(
                    uid: session.uid,
                    nickName: session.nickName,
                    token: token,
                    epoch: session.epoch,
                    serverVersion: session.serverVersion
                ),
                heartbeatAtMost: Self.longestInterval(idleTimeout: .milliseconds(Int64(session.idleTimeoutMs))),
                heartbeatPrior: session.heartbeatPriorSeconds == 0
                    ? nil : .seconds(Int64(session.heartbeatPriorSeconds))
            )
        )
    }

    /// The longest interval of heartbeats for which a server does not take the client for gone; nil: there is none.
    private static func longestInterval(idleTimeout: Duration) -> Duration? {
        // Time for three heartbeats of which two are lost; half the time where there is less.
        idleTimeout == .zero ? nil : max(idleTimeout / 2, idleTimeout - .seconds(30))
    }

    /// A request of the app was answered.
    private mutating func finished(_ result: Hermes_V1_Result, id: UInt64, now: NIODeadline, effects: inout Effects) {
        sending[id] = nil
        let entered = entering.removeValue(forKey: id)
        guard !result.hasError else {
            effects.append(.answer(id: id, .failure(HermesClientError(result.error))))
            return
        }
        if let entered { rooms[entered.room] = entered.user }
        if case .receipt(let receipt) = result.value, receipt.inboxSeq > 0 {
            // One's own message is an entry, too, of which this device gets the receipt alone.
            inbox.arrived(nil, seq: receipt.inboxSeq, to: receipt.inboxSeq, now: now, output: &outputs)
            drain(&effects)
        }
        effects.append(.answer(id: id, .success(.result(result))))
    }

    private mutating func arrived(_ event: Hermes_V1_Event, now: NIODeadline, effects: inout Effects) {
        var to = event.seq
        var entry: Entry? = Entry(
            event: InboxEvent(event),
            serverTime: event.serverTimeMs,
            source: keepsSources ? event : nil
        )
        var isExpired = false
        if case .expired(let expired) = event.event {
            to = max(to, expired.toSeq)
            isExpired = true
        }
        if case .message(let message) = event.event, message.own, !message.clientID.isEmpty,
            outgoing.contains(message.clientID) || sending.values.contains(message.clientID)
        {
            // Sent by this device before the connection broke or the app ended; its receipt comes when it is sent again.
            entry = nil
        }
        let before = inbox.received
        inbox.arrived(entry, seq: event.seq, to: to, now: now, output: &outputs)
        if isExpired, before < to, inbox.received >= to { inbox.noteLoss(of: max(event.seq, before + 1)...to) }
        drain(&effects)
    }

    /// Tells the app before a push to a room which ones before it did not arrive.
    private mutating func track(_ room: Hermes_V1_RoomEvent, effects: inout Effects) {
        if case .kicked = room.event { topics.forget(room.room) }
        guard room.topicSeq > 0,
            let missed = topics.arrived(room.topicSeq, epoch: room.topicEpoch, on: room.room)
        else { return }
        let count = missed.upperBound - missed.lowerBound &+ 1
        statistics.counter.missedPushes(count, date: WallClock.milliseconds())
        let gap = InboxEvent.topicGap(topic: "room/\(room.room)", from: missed.lowerBound, to: missed.upperBound)
        effects.append(.event(Event(epoch: 0, seq: 0, event: gap)))
    }

    private mutating func noticed(_ notice: Hermes_V1_Notice, effects: inout Effects) {
        if notice.hasReconnect { keepTicket(notice.reconnect) }
        let advice = notice.hasReconnect ? ConnectionEngine.StateMachine.Advice(notice.reconnect) : nil
        switch notice.kind {
        case .shutdown:
            if let advice { effects.append(.shutdownAnnounced(advice)) }
        case .reconnect:
            effects.append(.reconnectAdvised(advice ?? .init(notBefore: .zero, window: .seconds(5))))
        // The server has a token's end only for those who came by MQTT.
        case .operator, .tokenExpires, .unspecified, .UNRECOGNIZED:
            break
        }
        if !notice.message.isEmpty, backlog < Self.maxEphemeralBacklog {
            effects.append(.event(Event(epoch: 0, seq: 0, event: .notice(notice.message))))
        }
    }

    private mutating func kicked(_ kicked: Hermes_V1_Kicked) -> LinkEffect<Self> {
        let advice = kicked.hasReconnect ? ConnectionEngine.StateMachine.Advice(kicked.reconnect) : nil
        func error(_ code: HermesClientError.Code, _ text: String) -> HermesClientError {
            HermesClientError(code, kicked.message.isEmpty ? text : kicked.message)
        }
        switch kicked.reason {
        case .replaced:
            let text = "the same device logged in elsewhere"
            return .kicked(error(.replaced, text), mayReturn: strayLogins.blame(), advice: nil)
        case .disabled:
            return .kicked(error(.accountDisabled, "the account is disabled"), mayReturn: false, advice: nil)
        case .revoked:
            return .kicked(error(.revoked, "the login was revoked: log in again"), mayReturn: false, advice: nil)
        case .protocol, .timeout, .limit, .shutdown, .unspecified, .UNRECOGNIZED:
            return .kicked(error(.kicked, "the server ended the connection"), mayReturn: true, advice: advice)
        }
    }

    private mutating func keepTicket(_ advice: Hermes_V1_ReconnectAdvice) {
        // A longer one is none.
        if advice.ticket.count <= 64 { ticket = Array(advice.ticket) }
    }

    /// Makes the tracker's outputs into effects.
    private mutating func drain(_ effects: inout Effects) {
        if inbox.counts != InboxCounts() {
            statistics.counter.noticed(inbox.counts, date: WallClock.milliseconds())
            inbox.counts = InboxCounts()
        }
        for output in outputs {
            switch output {
            case .deliver(let seq, let entry):
                if case .gap = entry.event {
                    // Told, not received.
                } else {
                    let date = WallClock.milliseconds()
                    let latency = statistics.latency(serverTime: entry.serverTime, date: date)
                    statistics.counter.received(latency: latency, date: date)
                }
                let event = Event(epoch: inbox.epoch, seq: seq, event: entry.event, source: entry.source)
                effects.append(.event(event))
            case .missed(let range):
                let gap = InboxEvent.gap(from: range.lowerBound, to: range.upperBound)
                effects.append(.event(Event(epoch: inbox.epoch, seq: range.upperBound, event: gap)))
            case .synchronize(let afterSeq):
                var request = Hermes_V1_Synchronize()
                request.afterSeq = afterSeq
                effects.append(.send(.synchronize(request), id: ID.synchronize))
            case .acknowledge(let upToSeq):
                var request = Hermes_V1_Acknowledge()
                request.upToSeq = upToSeq
                effects.append(.send(.acknowledge(request)))
            }
        }
        outputs.removeAll(keepingCapacity: true)
    }
}

extension HermesClientError {
    init(_ error: Hermes_V1_Error) {
        self.init(
            Code(rawValue: error.code),
            error.message.isEmpty ? "the server refused without saying why" : error.message,
            retryAfter: error.retryAfterMs == 0 ? nil : .milliseconds(Int64(error.retryAfterMs))
        )
    }
}

extension ConnectionEngine.StateMachine.Advice {
    init(_ advice: Hermes_V1_ReconnectAdvice) {
        self.init(
            notBefore: .milliseconds(Int64(advice.notBeforeMs)),
            window: .milliseconds(Int64(advice.windowMs)),
            endpoint: ServerAddress.Endpoint(advice.address)
        )
    }
}
