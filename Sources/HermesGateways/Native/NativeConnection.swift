// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore
import HermesWire

/// One connection of the native protocol: it answers requests, and writes entries and events. It works with packets,
/// and does not know how they are carried. It is used only on its event loop.
package final class NativeConnection {
    let connection: Connection
    let environment: GatewayEnvironment
    /// The authenticated origin of requests; nil before authentication and after the end.
    private var sender: Sender?
    /// The connection's rooms; nil until it enters a room. Most connections never enter a room.
    var rooms: RoomMemberships<TopicSubscription>?
    /// The uptime when the client last reported its statistics; nil if it never did.
    var lastReport: Duration?

    /// The protocol that carries the packets; nil if the packets are in frames of their own.
    let carrier: Carrier?
    var access = ClientAccess()
    /// The packet id of a log-out that is under way; nil if there is none.
    var loggingOut: UInt64?
    /// Whether the connection ends because the client logged out.
    private(set) var hasLoggedOut = false
    /// Whether the client's last packet was JSON, in a text message of a WebSocket. The server writes in the same form.
    var isJSON: Bool

    /// The result of writing a packet through a carrier.
    enum Carriage {
        case carried
        /// The peer can accept neither the packet nor a stand-in for it. If the packet is an inbox entry, the entry
        /// counts as acknowledged when all entries before it are acknowledged.
        case leftOut
    }

    /// Another protocol that carries the packets.
    struct Carrier {
        let write: (Hermes_V1_Packet, Publication.DropClass) -> Carriage
        /// The number of inbox entries that the peer can accept now. After a change, ``roomChanged()`` must be called.
        let freeSlots: () -> Int
        /// The client's rules, which a token may narrow.
        let rules: () -> BoundTopicRules?
    }

    init(connection: Connection, environment: GatewayEnvironment, carrier: Carrier? = nil) {
        self.connection = connection
        self.environment = environment
        self.carrier = carrier
        isJSON = connection.startsInText
    }

    /// Whether another protocol carries the packets.
    var isCarried: Bool { carrier != nil }

    /// Whether the entry that is being written belongs to a page that the peer requested (``InboxLink/isRepeating``).
    var isRepeating: Bool { sender?.link.isRepeating ?? false }

    var messenger: Messenger { environment.messenger }

    // MARK: Packets

    func received(_ packet: Hermes_V1_Packet) {
        // Frames are charged when they are decoded.
        if isCarried { connection.charge(.packet) }
        guard let sender else { return receivedFromStranger(packet) }
        received(packet, from: sender)
    }

    /// The authenticated origin of requests.
    final class Sender {
        let principal: Principal
        let login: Login
        let link: InboxLink

        init(login: Login, link: InboxLink) {
            principal = login.principal
            self.login = login
            self.link = link
        }
    }

    /// The connection's account; nil before authentication and after the end.
    var user: UserID? { sender?.principal.user }

    var principal: Principal? { sender?.principal }

    /// Whether the connection may perform an action in a room, by the rules in force.
    func may(_ action: TopicAction, _ room: RoomName) -> Bool {
        if let carrier { return carrier.rules()?.may(action, room) ?? false }
        guard let principal else { return false }
        return access.may(action, room, ClientIdentity(principal), by: environment.access)
    }

    private func receivedFromStranger(_ packet: Hermes_V1_Packet) {
        switch packet.body {
        case .register(let register): self.register(register, id: packet.id)
        case .authenticate(let authenticate): self.authenticate(authenticate, id: packet.id)
        case .ping(let ping): pong(ping, id: packet.id)
        default: fail(packet.id, HermesError(.notAuthenticated, "authenticate first"))
        }
    }

    private func received(_ packet: Hermes_V1_Packet, from sender: Sender) {
        let id = packet.id
        switch packet.body {
        case .send(let send): self.send(send, id: id, from: sender)
        case .acknowledge(let acknowledge):
            sender.link.acknowledged(upTo: acknowledge.upToSeq)
            if id != 0 { succeed(id) }
        case .ping(let ping): pong(ping, id: id)
        case .register, .authenticate:
            fail(id, HermesError(.alreadyAuthenticated, "this connection is authenticated; use another one"))
        case .synchronize, .markRead, .recall, .history, .conversations: askInbox(packet, from: sender)
        case .typing(let typing): self.typing(typing, id: id, from: sender)
        case .presence(let presence): self.presence(presence, id: id, from: sender)
        case .room(let room): self.room(room, id: id, from: sender)
        case .device(let device): self.device(device, id: id, from: sender)
        case .signal(let signal): self.signal(signal, id: id, from: sender)
        case .statistics(let statistics): self.statistics(statistics, id: id, from: sender)
        case .account(let account): self.account(account, id: id, from: sender)
        case .logOut(let logOut): self.logOut(logOut, id: id, from: sender)
        case .contact(let contact): self.contact(contact, id: id, from: sender)
        case .group(let group): self.group(group, id: id, from: sender)
        case .result, .event, .ephemeral, .notice, .kicked, .pong:
            fail(id, HermesError(.invalidArgument, "only the server sends this body"))
        case nil:
            fail(id, HermesError(.unsupported, "the server does not know this body; it may be of a newer version"))
        }
    }

    private func pong(_ ping: Hermes_V1_Ping, id: UInt64) {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.pong.clientTimeMs = ping.clientTimeMs
        packet.pong.serverTimeMs = messenger.time.now().rawValue
        write(packet)
    }

    // MARK: Answers

    func write(_ packet: Hermes_V1_Packet, _ kind: Publication.DropClass = .control) {
        if let carrier {
            switch carrier.write(packet, kind) {
            case .carried: break
            case .leftOut: if case .event = packet.body { sender?.link.leftOut() }
            }
            return
        }
        writeFrame(packet, kind)
    }

    /// Writes an empty result, if an answer is wanted.
    func succeed(_ id: UInt64) { succeed(id, nil) }

    /// Writes a result with a value, if an answer is wanted.
    ///
    /// - Parameter value: nil for an empty result.
    func succeed(_ id: UInt64, _ value: Hermes_V1_Result.OneOf_Value?) {
        guard id != 0 else { return }
        var packet = Hermes_V1_Packet()
        packet.id = id
        var result = Hermes_V1_Result()
        result.value = value
        packet.result = result
        write(packet)
    }

    /// Writes an error, even if no answer is wanted.
    func fail(_ id: UInt64, _ error: HermesError) {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.result.error = NativeTranslation.error(error)
        write(packet)
    }

    /// Warns the client that its token expires soon. The connection then ends, unless the client has sent a new token
    /// by then.
    func warn(tokenExpiresAt end: Timestamp) {
        var packet = Hermes_V1_Packet()
        packet.notice.kind = .tokenExpires
        packet.notice.expiresAtMs = end.rawValue
        packet.notice.message = "the token expires soon; authenticate with a new one to keep the connection"
        write(packet)
    }

    // MARK: Life

    /// Binds the connection to an account.
    ///
    /// - Parameter window: the largest number of entries that may be written but not yet acknowledged.
    func authenticated(_ login: Login, after cursor: UInt64, window: Int = 1_024) {
        connection.authenticated()
        connection.account = login.principal.user
        let link = InboxLink(
            principal: login.principal,
            connection: connection,
            messenger: messenger,
            window: window,
            freeSlots: carrier?.freeSlots,
            write: { [unowned self] entry in write(entry) }
        )
        sender = Sender(login: login, link: link)
        // A device may open its inbox again long after its login. By then, its cursor may be past the head that the
        // inbox had at the login.
        link.open(after: cursor, head: max(login.position.head, cursor))
    }

    package func farewell(_ reason: CloseReason) { farewell(reason, otherwise: nil) }

    /// - Parameter words: the code and the message of `kicked` if the native protocol has none for `reason`.
    func farewell(_ reason: CloseReason, otherwise words: (code: UInt32, message: String)?) {
        if case .attachment(.revoked) = reason, let id = loggingOut {
            // The client's log-out revoked the token. Over MQTT, the revocation ends the connection before the answer
            // to the log-out arrives.
            loggingOut = nil
            hasLoggedOut = true
            succeed(id)
        } else if var kicked = NativeTranslation.kicked(reason) {
            if kicked.hasReconnect, let user {
                kicked.reconnect.ticket = Data(environment.tickets.issue(to: user, now: messenger.time.now()))
            }
            var packet = Hermes_V1_Packet()
            packet.kicked = kicked
            write(packet)
        } else if let words {
            var packet = Hermes_V1_Packet()
            packet.kicked.code = words.code
            packet.kicked.message = words.message
            write(packet)
        }
        if case .shuttingDown = reason { letGo(isServerStopping: true) } else { letGo() }
    }

    package func closed() { letGo() }

    private func letGo(isServerStopping: Bool = false) {
        let user = user
        sender?.link.close()
        sender = nil
        guard let left = rooms else { return }
        rooms = nil
        leave(left, as: user, isServerStopping: isServerStopping)
    }

    /// The last seq up to which the client has all entries; nil without a login.
    var acknowledgedSeq: UInt64? { sender?.link.acknowledgedSeq }

    /// Records that the client has all entries up to this seq.
    func acknowledged(upTo seq: UInt64) { sender?.link.acknowledged(upTo: seq) }

    package func becameWritable() { sender?.link.becameWritable() }

    /// Continues to write entries, because the peer may be able to accept another entry (``Carrier/freeSlots``).
    func roomChanged() { sender?.link.roomChanged() }

    /// Handles committed entries. ``InboxFeed`` decides which of them are written now. The link writes those entries
    /// while the output queue has room. All other entries stay in the store, and are read again later.
    package func inboxAdvanced(_ entries: [InboxEntry]) { sender?.link.advanced(entries) }
}

// MARK: - Messages and the inbox
extension NativeConnection {
    /// Sends a message. This function is on the hot path. It starts no task, and does not wait for the commit.
    ///
    /// ``CanonicalContent`` checks the lengths of the content's fields, and encodes the content in the form that is
    /// stored. `Connection.send` charges the content's bytes once more, for the commit. It pauses reading while too
    /// many messages are unanswered, and calls ``MessageService/send(_:from:completion:)``. The completion of that
    /// call posts the result to this loop. The result arrives in ``sent(_:_:)``.
    func send(_ request: Hermes_V1_Send, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.to, id: id, from: sender) else { return }
        let content: MessageContent
        switch CanonicalContent.validated(request.content) {
        case .failure(let error): return fail(id, error)
        case .success(let bytes): content = bytes
        }
        let draft = MessageDraft(
            conversation: conversation,
            clientID: request.clientID.isEmpty ? nil : request.clientID,
            content: content,
            expiresAfter: request.expiresInSeconds == 0 ? nil : .seconds(Int64(request.expiresInSeconds))
        )
        connection.send(draft, from: sender.principal, correlation: id, messages: messenger.messages)
    }

    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {
        switch result {
        case .failure(let error): fail(correlation, error)
        case .success(let receipt): succeed(correlation, .receipt(NativeTranslation.receipt(receipt)))
        }
    }

    /// Returns the conversation that a request names. If the conversation is not valid, this function writes an error
    /// and returns nil.
    func conversation(_ conversation: Hermes_V1_Conversation, id: UInt64, from sender: Sender) -> ConversationID? {
        do throws(HermesError) {
            return try NativeTranslation.conversation(conversation, of: sender.principal.user)
        } catch {
            fail(id, error)
            return nil
        }
    }

    // MARK: The inbox

    /// Passes a packet's request to the inbox, and writes the answer when it arrives.
    func askInbox(_ packet: Hermes_V1_Packet, from sender: Sender) {
        let id = packet.id
        let user = sender.principal.user
        do throws(HermesError) {
            guard let request = try NativeTranslation.inboxRequest(packet, by: user) else {
                return fail(id, HermesError(.unsupported, "this is not a request to the inbox"))
            }
            sender.link.ask(request) { [self] result in
                switch result {
                case .failure(let error): fail(id, error)
                case .success(let answer): succeed(id, NativeTranslation.value(of: answer, reader: user))
                }
            }
        } catch {
            fail(id, error)
        }
    }

    // MARK: Deliveries

    /// Writes an entry. A long entry is encoded once for all devices of the account on this loop.
    func write(_ entry: InboxEntry) {
        guard let principal else { return }
        if isCarried { write(Self.packet(entry, reader: principal)) } else { writeFrame(entry, for: principal) }
    }

    static func packet(_ entry: InboxEntry, reader principal: Principal) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.event = Hermes_V1_Event(entry, reader: principal)
        return packet
    }
}
