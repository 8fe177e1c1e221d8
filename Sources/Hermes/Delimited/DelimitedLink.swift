// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The link of the native protocol, whose packets travel in Delimited frames or over MQTT.
struct DelimitedLink: ConnectionLink {
    typealias Decoder = PacketDecoder
    typealias Request = Hermes_V1_Packet.OneOf_Body
    typealias Login = Session

    enum Answer: Sendable {
        case result(Hermes_V1_Result)
        case pong(Hermes_V1_Pong)
    }

    /// Ids of packets whose answers the link itself awaits.
    enum ID {
        static let authentication: UInt64 = 1
        static let heartbeat: UInt64 = 2
        static let presence: UInt64 = 3
        static let synchronize: UInt64 = 4
        static let statistics: UInt64 = 6
        /// After a reconnect, the link sends requests to enter its rooms again. The ids of these requests are above
        /// this id, and far above the ids of the app's requests.
        static let firstReturn: UInt64 = 1 << 63
    }

    let maxFrameBytes: Int
    /// The carrier that transports the packets over MQTT; nil if the packets travel in Delimited frames.
    var carrier: MQTTCarrier?
    /// The longest frame that the server accepts, in bytes; nil if the server announced none at the login.
    var serverMaxFrameBytes: Int?
    let device: DeviceDescription
    var credential: Credential?
    /// Whether an earlier connection ended before the answer to a registration. If so, the account may already exist.
    private var mayBeRegistered = false
    var registerIsUnanswered = false
    var inbox: InboxTracker<Entry>
    /// The newest entry that has arrived in this inbox; nil if none has.
    var newest: KnownEntry?
    /// The number of the present inbox; see ``Event/incarnation``.
    var incarnation: UInt64 = 0
    /// Describes which events of earlier inboxes stay valid: those with the incarnation `since` or a later one, and
    /// with a seq of at most `upTo`.
    var carried: (since: UInt64, upTo: UInt64)?
    /// The ids of the last 1,024 messages and pushes that the app got. Other entries have no id.
    var seen = SeenEntries()
    /// The account that the inbox belongs to; nil if it is not known yet.
    var owner: UInt32?
    /// Whether the credential certainly belongs to the owner. If this is false and the owner is unknown, the login must
    /// not send the cursor to the server.
    var isOwnerCertain = true
    /// Whether each event keeps the received entry from which it was created.
    private(set) var keepsSources = false
    /// The function that records in the store the cursor `place`, up to which the app has nothing left to take, and the
    /// newest entry. `uid` is the inbox's account. `isReset` says whether a reset inbox begins at this cursor. If so,
    /// the app has yet to take the event `inboxReset`.
    private(set) var keepPlace: KeepPlace?
    typealias KeepPlace = @Sendable (_ place: Cursor, _ newest: KnownEntry?, _ uid: UInt32, _ isReset: Bool) -> Void
    /// The last cursor that `keepPlace` got, or the place at the last login; nil before the first login.
    var keptPlace: Cursor?
    /// Whether an earlier run of the app ended before the app had taken the event `inboxReset`.
    var owesReset = false
    /// The function to call after each login.
    var loggedIn: (@Sendable (Session) -> Void)?
    /// The function to call when there will be no further connection before the next login.
    var tellStopped: (@Sendable () -> Void)?
    /// The credential that the app last passed. ``credential`` may instead be the token that the login returned.
    private var requested: Credential?
    /// The client ids of the messages whose receipts have not arrived yet, by packet id.
    var sending: [UInt64: ExactText] = [:]
    /// The client ids of the messages in the outbox.
    var outgoing: Set<ExactText> = []
    /// The broadcast that hands ephemeral events to the app.
    var ephemeral = Broadcast<EphemeralEvent>()
    var statistics: LinkStatistics
    /// The time at which the login was sent, by the device's clock, in milliseconds since 1970.
    private var askedAt: Int64 = 0
    /// The logins of the last five minutes that were abandoned before their answers arrived. One of them may replace
    /// this client later.
    private var strayLogins = StrayLogins() {
        didSet { if strayLogins.unanswered != oldValue.unanswered { keepLogins?(strayLogins.unanswered) } }
    }
    /// The function that stores the unanswered logins for the next run of the app.
    private var keepLogins: (@Sendable ([Int64]) -> Void)?
    /// The ticket from the server's reconnect advice, for the next login. The server uses it only to count the clients
    /// that return.
    private var ticket: [UInt8] = []
    /// Rooms that the app is entering, by packet id.
    private var entering: [UInt64: (room: String, user: RoomUser)] = [:]
    /// Rooms to enter again on the next connection. The server has accepted the entry to each of them, and the app has
    /// not left it.
    var rooms: [String: RoomUser] = [:]
    /// The scopes in each room.
    var roomScopes: [String: RoomScopes] = [:]
    /// The number of times that the app has logged in.
    private(set) var logins: UInt64 = 0
    /// Rooms that are being entered again, by packet id.
    private var returning: [UInt64: String] = [:]
    private var lastReturn = ID.firstReturn
    /// The number of the last push to each room.
    var topics = TopicTracker()
    /// Accounts to watch again on the next connection.
    var watched = WatchedUsers()
    /// The app's state. The server pushes messages at once while the app is not in the foreground.
    var appState = DeviceConditions.AppState.foreground
    var outputs: [InboxTracker<Entry>.Output] = []

    /// The length of the frame that is being handled, in bytes.
    private(set) var frameBytes = 0
    /// Whether a login is unanswered.
    private var isAuthenticating = false

    init(
        device: DeviceDescription,
        cursor: Cursor?,
        maxFrameBytes: Int,
        statisticsInterval: Duration?,
        carrier: MQTTCarrier? = nil
    ) {
        self.device = device
        self.carrier = carrier
        statistics = LinkStatistics(interval: statisticsInterval, appVersion: device.appVersion)
        self.maxFrameBytes = maxFrameBytes
        inbox = InboxTracker(epoch: cursor?.epoch ?? 0, taken: cursor?.seq ?? 0)
    }

    /// Sets the credential for a login, perhaps to another account.
    mutating func logIn(_ new: Credential) {
        if owner != nil, new != credential { isOwnerCertain = false }
        if new != requested { mayBeRegistered = false }
        credential = new
        requested = new
        logins &+= 1
        // The ticket belongs to the previous account.
        ticket = []
    }

    /// Whether the credential is the one that the app last passed, or the token that the login returned.
    func isLoggedIn(with credential: Credential) -> Bool { credential == requested || credential == self.credential }

    /// Continues the inbox where an earlier run of the app stopped. If the link has logged in as another account since
    /// then, it keeps that account's inbox, and the next login sends that account's uid with the cursor.
    ///
    /// - Parameters:
    ///   - cursor: the last entry that the app took; nil if unknown.
    ///   - newest: the newest entry that had arrived; nil if unknown.
    ///   - owner: the inbox's account; nil if unknown.
    ///   - isCertain: whether the credential is known to be the owner's. If not, the answer to the login names the
    ///     account.
    ///   - recent: the last entries that the app took, oldest first.
    ///   - owesReset: whether the app did not take the last event `inboxReset`.
    ///   - keepPlace: the function that records in the store the cursor up to which the app has nothing left to take,
    ///     and the newest entry.
    mutating func resume(
        _ cursor: Cursor?,
        newest: KnownEntry?,
        of owner: UInt32?,
        isCertain: Bool,
        recent: [InboxEvent],
        owesReset: Bool,
        keepPlace: @escaping KeepPlace
    ) {
        keepsSources = true
        self.keepPlace = keepPlace
        if let known = self.owner, known != owner {
            isOwnerCertain = false
            return
        }
        self.owner = owner
        isOwnerCertain = isCertain
        for event in recent { _ = seen.insert(event) }
        // Later in this run, the event is already among the events that wait for the app.
        guard inbox.epoch == 0 else { return }
        self.owesReset = owesReset
        guard let cursor else { return }
        inbox = InboxTracker(epoch: cursor.epoch, taken: cursor.seq)
        self.newest = newest
    }

    /// Takes over the logins that an earlier run of the app sent and that may still reach the server.
    ///
    /// - Parameters:
    ///   - logins: the logins; see ``StrayLogins/unanswered``.
    ///   - keep: the function that stores the logins of this run for the next run.
    mutating func remember(unanswered logins: [Int64], keep: @escaping @Sendable ([Int64]) -> Void) {
        strayLogins = StrayLogins(unanswered: logins)
        keepLogins = keep
    }

    func makeDecoder() -> PacketDecoder {
        carrier == nil ? PacketDecoder(maxFrameBytes: maxFrameBytes) : PacketDecoder(mqtt: maxFrameBytes)
    }

    func writeFarewell(into buffer: inout ByteBuffer) throws { try carrier?.writeFarewell(into: &buffer) }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        if let carrier { return try carrier.writeHeartbeat(into: &buffer) }
        var ping = Hermes_V1_Ping()
        ping.clientTimeMs = WallClock.milliseconds()
        try write(.ping(ping), id: ID.heartbeat, into: &buffer)
    }

    mutating func connected(effects: inout Effects) throws {
        guard let credential else { throw HermesClientError(.closed, "log in first") }
        serverMaxFrameBytes = nil
        isAuthenticating = true
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
            lastReturn &+= 1
            effects.append(.send(.room(request), id: lastReturn))
            returning[lastReturn] = room
        }
        guard !watched.isEmpty || appState != .foreground else { return }
        var request = Hermes_V1_PresenceRequest()
        request.watchUids = watched.sorted
        // Foreground is the server's default and need not be sent.
        if appState != .foreground { request.appState = appState.wire }
        effects.append(.send(.presence(request), id: ID.presence))
    }

    mutating func received(_ frame: PacketDecoder.Frame, now: NIODeadline, effects: inout Effects) throws {
        switch frame {
        case .delimited(let frame):
            frameBytes = frame.body.readableBytes
            try received(try frame.packet(maxParts: nil), now: now, effects: &effects)
        case .mqtt(let frame):
            for (packet, bytes) in try carrier?.received(frame) ?? [] {
                frameBytes = bytes
                try received(packet, now: now, effects: &effects)
            }
        }
    }

    private mutating func received(_ packet: Hermes_V1_Packet, now: NIODeadline, effects: inout Effects) throws {
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
            guard let event = EphemeralEvent(ephemeral) else { return }
            if case .room(let room) = ephemeral.event { track(room) }
            self.ephemeral.send(event, bytes: frameBytes)
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
            .group, .presence, .room, .device, .signal, .statistics, .ping, .account, .logOut, .history, .conversations:
            throw HermesClientError(.protocolViolation, "the server sent a body that only clients send")
        case nil:
            // Ignore a body that a newer version has added.
            return
        }
    }

    mutating func lost() {
        mayBeRegistered = mayBeRegistered || registerIsUnanswered
        registerIsUnanswered = false
        sending = [:]
        entering = [:]
        returning = [:]
        inbox.lost()
        statistics.lost()
        strayLogins.connectionLost()
        carrier?.lost()
    }

    func stopped() {
        ephemeral.close()
        tellStopped?()
    }

    mutating func closing(effects: inout Effects) {
        inbox.acknowledgeNow(output: &outputs)
        drain(&effects)
    }

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
        // If the credential belongs to another account than the inbox, the server ignores the place.
        if isOwnerCertain || owner != nil, inbox.epoch != 0 {
            request.uid = owner ?? 0
            request.epoch = inbox.epoch
            request.acknowledgedSeq = inbox.taken
            if let newest { request.newest = newest.wire }
        }
        return .send(.authenticate(request), id: ID.authentication)
    }

    private var describedDevice: Hermes_V1_DeviceDescription {
        var description = device.wire
        description.networkLabel = statistics.counter.kind
        return description
    }

    /// Handles the answer to one of the link's own packets.
    private mutating func answered(
        _ result: Hermes_V1_Result,
        id: UInt64,
        now: NIODeadline,
        effects: inout Effects
    ) {
        switch id {
        case ID.authentication:
            // Each login has one answer. Further answers are ignored.
            guard isAuthenticating else { return }
            isAuthenticating = false
            authenticationAnswered(result, now: now, effects: &effects)
        case ID.statistics:
            statistics.answered(result)
        case ID.presence:
            for presence in result.presence.presences.prefix(watched.count) {
                ephemeral.send(EphemeralEvent(.presence(Presence(presence))), bytes: 0)
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
            // A result with the id 0 reports the failure of a request that asked for no answer.
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
            return authenticationRefused(HermesClientError(result.error), effects: &effects)
        }
        if !session.token.isEmpty { credential = .token(session.token) }
        mayBeRegistered = false
        ticket = []
        serverMaxFrameBytes = session.maxFrameBytes == 0 ? nil : Int(clamping: session.maxFrameBytes)
        statistics.clock.answered(
            askedAt: askedAt,
            answeredAt: WallClock.milliseconds(),
            serverTime: session.serverTimeMs
        )
        inboxBegan(session, now: now, effects: &effects)
        var token = ""
        if case .token(let known) = credential { token = known }
        let login = Session(
            uid: UserID(rawValue: session.uid),
            nickName: session.nickName,
            token: token,
            epoch: session.epoch,
            serverVersion: session.serverVersion
        )
        loggedIn?(login)
        effects.append(
            .authenticated(
                login,
                heartbeatAtMost: Self.longestInterval(idleTimeout: .milliseconds(Int64(session.idleTimeoutMs))),
                heartbeatPrior: session.heartbeatPriorSeconds == 0
                    ? nil : .seconds(Int64(session.heartbeatPriorSeconds))
            )
        )
    }

    /// Handles the beginning of a session: the server continues the inbox, has a new inbox, or has lost entries.
    private mutating func inboxBegan(_ session: Hermes_V1_Session, now: NIODeadline, effects: inout Effects) {
        if let owner, owner != session.uid { changeOwner(&effects) }
        owner = session.uid
        isOwnerCertain = true
        let resumption = inbox.resumed(
            epoch: session.epoch,
            serverAcknowledged: session.acknowledgedSeq,
            head: session.headSeq,
            hasLostEntries: session.inboxReset,
            now: now
        )
        if resumption != .goesOn { newest = nil }
        let place = place
        keptPlace = place
        switch resumption {
        case .goesOn:
            // If an earlier run of the app ended before it took `inboxReset`, the app gets that event again.
            guard owesReset else { return }
        case .newInbox: carried = nil
        case .rewound(let last):
            // Waiting events with seqs up to the last common seq stay valid.
            carried = (since: carried?.since ?? incarnation, upTo: min(carried?.upTo ?? last, last))
        }
        owesReset = false
        incarnation &+= 1
        keepPlace?(place, nil, session.uid, true)
        let reset = InboxEvent(.inboxReset)
        effects.append(.event(Event(epoch: inbox.epoch, seq: 0, incarnation: incarnation, event: reset)))
    }

    /// Drops the data of the previous account, because another account logged in.
    private mutating func changeOwner(_ effects: inout Effects) {
        inbox = InboxTracker()
        newest = nil
        owesReset = false
        incarnation &+= 1
        carried = nil
        seen = SeenEntries()
        rooms = [:]
        forgetRoomScopes()
        watched = WatchedUsers()
        topics.forgetAll()
        ephemeral.clear()
        effects.append(.forgetEvents)
    }

    private mutating func authenticationRefused(_ error: HermesClientError, effects: inout Effects) {
        // Over MQTT, the server refuses a login if it has read another CONNECT of the same device meanwhile.
        let isOvertaken = error.code.rawValue == HermesClientError.replacedOnServer
        if isOvertaken, strayLogins.blame() { return effects.append(.refused(error.retried(after: .zero))) }
        guard case .register(let nickName, let password, _) = credential else {
            return effects.append(.refused(error))
        }
        guard error.code == .nameTaken, mayBeRegistered else {
            mayBeRegistered = false
            return effects.append(.refused(error))
        }
        // An earlier try, whose answer was lost, may have registered the account.
        credential = .password(nickName: nickName, password: password)
        // Over MQTT, the refusal ends the connection, so the next connection logs in with the password.
        guard carrier == nil else { return effects.append(.refused(error.retried(after: .zero))) }
        strayLogins.began()
        isAuthenticating = true
        effects.append(authenticate { $0.password = Self.wire(nickName, password) })
    }

    /// The longest heartbeat interval that stays below the server's idle timeout; nil if there is no timeout.
    private static func longestInterval(idleTimeout: Duration) -> Duration? {
        // The interval leaves 30 s until the timeout, enough for two lost heartbeats and a third that arrives. If the
        // timeout is below 60 s, the interval leaves half of the timeout.
        idleTimeout == .zero ? nil : max(idleTimeout / 2, idleTimeout - .seconds(30))
    }

    private mutating func noticed(_ notice: Hermes_V1_Notice, effects: inout Effects) {
        if notice.hasReconnect { keepTicket(notice.reconnect) }
        let advice = notice.hasReconnect ? ConnectionEngine.StateMachine.Advice(notice.reconnect) : nil
        switch notice.kind {
        case .shutdown:
            if let advice { effects.append(.shutdownAnnounced(advice)) }
        case .reconnect:
            effects.append(.reconnectAdvised(advice ?? .init(notBefore: .zero, window: .seconds(5))))
        // The server warns of an expiring token only over MQTT.
        case .operator, .tokenExpires, .unspecified, .UNRECOGNIZED:
            break
        }
        if !notice.message.isEmpty { ephemeral.send(EphemeralEvent(.notice(notice.message)), bytes: frameBytes) }
    }

    private mutating func kicked(_ kicked: Hermes_V1_Kicked) -> LinkEffect<Self> {
        let advice = kicked.hasReconnect ? ConnectionEngine.StateMachine.Advice(kicked.reconnect) : nil
        func error(_ code: HermesClientError.Code, _ text: String) -> HermesClientError {
            HermesClientError(code, kicked.message.isEmpty ? text : kicked.message)
        }
        // An older server sends no code. The driver then searches for the request that broke the protocol.
        let breach = HermesClientError.Code(rawValue: kicked.code)
        switch kicked.reason {
        case .replaced:
            let text = "the same device logged in elsewhere"
            return .kicked(error(.replaced, text), mayReturn: strayLogins.blame(), advice: nil)
        case .disabled:
            return .kicked(error(.accountDisabled, "the account is disabled"), mayReturn: false, advice: nil)
        case .revoked:
            return .kicked(error(.revoked, "the login was revoked: log in again"), mayReturn: false, advice: nil)
        case .protocol, .timeout, .limit, .shutdown, .unspecified, .UNRECOGNIZED:
            let isBreach = kicked.reason == .protocol
            let error = error(isBreach && kicked.code > 0 ? breach : .kicked, "the server ended the connection")
            return .kicked(error, mayReturn: true, advice: advice, isBreach: isBreach)
        }
    }

    private mutating func keepTicket(_ advice: Hermes_V1_ReconnectAdvice) {
        // A ticket of more than 64 bytes is invalid.
        if advice.ticket.count <= 64 { ticket = Array(advice.ticket) }
    }

    // MARK: Rooms

    /// Records which room the app enters or leaves.
    mutating func remember(_ request: Hermes_V1_RoomRequest, id: UInt64) {
        switch request.request {
        case .enter(let enter): if returning[id] == nil { entering[id] = (request.room, RoomUser(enter.user)) }
        case .leave: left(request.room)
        case .text, .gift, .custom, nil: break
        }
    }

    /// Handles the answer to a request to enter a room. If the server refuses to let the client enter a room again, the
    /// app gets a `kicked` event.
    ///
    /// - Returns: whether the link itself had sent the request, after a reconnect.
    mutating func entryAnswered(_ result: Hermes_V1_Result, id: UInt64) -> Bool {
        if let entered = entering.removeValue(forKey: id), !result.hasError { rooms[entered.room] = entered.user }
        guard let room = returning.removeValue(forKey: id) else { return false }
        guard result.hasError, rooms.removeValue(forKey: room) != nil else { return true }
        topics.forget(room)
        let reason = HermesClientError(result.error).message
        ephemeral.send(
            EphemeralEvent(.room(RoomEvent(room: room, user: nil, kind: .kicked(reason: reason)))),
            bytes: frameBytes
        )
        return true
    }

    /// Forgets a room that the client has left or is leaving, so that later connections do not enter it again.
    mutating func left(_ room: String) {
        rooms[room] = nil
        entering = entering.filter { $0.value.room != room }
        topics.forget(room)
    }
}
