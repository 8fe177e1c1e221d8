// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Metrics

/// A login or a registration that a packet of the native protocol requests. It does not depend on the protocol that
/// carries the packet.
struct NativeLogin: Sendable {
    private enum Proof: Sendable {
        case registration(nickName: String, password: String, invitation: String)
        case credential(Credential)
    }

    let device: DeviceDescription
    private let proof: Proof
    /// The client's own record of its place in the inbox of `account`; nil stands for the account that logs in. If the
    /// epoch is 0, the client has no record.
    private let place: (account: UInt32?, epoch: UInt64, acknowledged: UInt64)
    /// The newest entry that the client has got; nil if the client has no record of its place.
    private let newest: KnownEntry?
    private let ticket: [UInt8]
    private let network: String

    init(_ request: Hermes_V1_Register) throws(HermesError) {
        device = try Self.device(request.device)
        proof = .registration(
            nickName: request.nickName,
            password: request.password,
            invitation: request.invitation
        )
        place = (nil, 0, 0)
        newest = nil
        ticket = []
        network = request.device.networkLabel
    }

    init(_ request: Hermes_V1_Authenticate) throws(HermesError) {
        device = try Self.device(request.device)
        switch request.credential {
        case .password(let password):
            proof = .credential(.password(nickName: password.nickName, password: password.password))
        case .token(let token): proof = .credential(.token(token))
        case nil: throw HermesError(.invalidArgument, "give a password or a token")
        }
        place = (request.uid == 0 ? nil : request.uid, request.epoch, request.acknowledgedSeq)
        newest =
            request.hasNewest && request.epoch != 0
            ? KnownEntry(
                seq: request.newest.seq,
                id: request.newest.id,
                committedAt: Timestamp(rawValue: request.newest.serverTimeMs)
            ) : nil
        ticket = request.ticket.count <= 64 ? Array(request.ticket) : []
        network = request.device.networkLabel
    }

    /// Creates the login that a packet requests; nil if the packet is neither a login nor a registration.
    init?(_ packet: Hermes_V1_Packet) throws(HermesError) {
        switch packet.body {
        case .register(let request): try self.init(request)
        case .authenticate(let request): try self.init(request)
        default: return nil
        }
    }

    private static func device(_ description: Hermes_V1_DeviceDescription) throws(HermesError) -> DeviceDescription {
        DeviceDescription(
            id: try RequestedIDs.device(description.id, in: "device.id"),
            name: description.name,
            platform: description.platform,
            appVersion: description.appVersion
        )
    }

    /// The name that the client gives; nil if the client presents a token.
    var userName: String? {
        switch proof {
        case .registration(let nickName, _, _), .credential(.password(let nickName, _)): nickName
        case .credential: nil
        }
    }

    /// The name of the account to create; nil if this is not a registration, or if the name is not valid.
    var newName: NickName? {
        guard case .registration(let text, _, _) = proof else { return nil }
        return try? NickName(new: text)
    }

    /// The login's cost for the server, to be charged before ``perform(by:address:)``.
    var cost: RequestCost {
        switch proof {
        case .registration, .credential(.password): .password
        case .credential: .login
        }
    }

    /// The result of a login.
    struct Outcome: Sendable {
        let login: Login
        /// Whether the store has lost entries that the client has: their seqs mean other entries, or none yet.
        let hasLostEntries: Bool
    }

    /// Carries out the login, and compares the client's record of its place with the store.
    ///
    /// - Parameter address: the peer's address without port, for limits.
    func perform(by accounts: AccountService, address: String?) async throws(HermesError) -> Outcome {
        let login = try await logIn(by: accounts, address: address)
        return Outcome(login: login, hasLostEntries: try await hasLostEntries(login, accounts))
    }

    private func logIn(by accounts: AccountService, address: String?) async throws(HermesError) -> Login {
        switch proof {
        case .registration(let nickName, let password, let invitation):
            try await accounts.register(
                nickName: nickName,
                password: password,
                invitation: invitation,
                device: device,
                address: address
            )
        case .credential(let credential):
            try await accounts.logIn(credential, device: device, address: address)
        }
    }

    /// Whether the client's place is in this account's inbox and in the present epoch.
    private func isPlace(in login: Login) -> Bool {
        guard place.epoch != 0, place.epoch == login.position.epoch else { return false }
        return place.account.map { $0 == login.principal.user.rawValue } ?? true
    }

    /// Whether the client has entries that the store has lost, although the store has the epoch of the client's place.
    /// This happens after the restore of an earlier state that the store did not recognize.
    private func hasLostEntries(_ login: Login, _ accounts: AccountService) async throws(HermesError) -> Bool {
        guard isPlace(in: login) else { return false }
        // A place past the end of the inbox belongs to lost entries. Their seqs are assigned again.
        let head = login.position.head
        guard place.acknowledged <= head, newest?.seq ?? 0 <= head else { return true }
        // The store records the device's cursor later than the client sends it. Entries up to this cursor were in the
        // store when the device acknowledged them, and may have been deleted.
        guard let newest, newest.seq > login.device.cursor else { return false }
        return try await !accounts.has(newest, inInboxOf: login.principal.user)
    }

    /// Returns the answer to the client, and the seq after which the delivery of its inbox continues.
    ///
    /// If the client presents the ticket of a stopped server, this function counts the ticket. If the client says
    /// that it has more entries than it has acknowledged, this function acknowledges these entries.
    func welcome(
        _ outcome: Outcome,
        on connection: Connection,
        in environment: GatewayEnvironment
    ) -> (session: Hermes_V1_Session, cursor: UInt64) {
        let login = outcome.login
        let now = environment.messenger.time.now()
        if !ticket.isEmpty {
            let isValid = environment.tickets.isValid(ticket, of: login.principal.user, now: now)
            Counter(label: "hermes_reconnect_tickets_total", dimensions: [("valid", isValid ? "yes" : "no")])
                .increment()
        }
        // If client and server refer to the same store, the client's record of its place takes precedence over the
        // server's record.
        let isSameStore = isPlace(in: login) && !outcome.hasLostEntries
        let cursor = isSameStore ? place.acknowledged : login.device.cursor
        var session = NativeTranslation.session(login, now: now)
        session.acknowledgedSeq = max(login.device.cursor, isSameStore ? cursor : 0)
        session.inboxReset = outcome.hasLostEntries
        Self.describeServer(in: &session, on: connection, in: environment)
        session.heartbeatPriorSeconds = environment.heartbeatPrior(in: network)
        if cursor > login.device.cursor { environment.messenger.inbox.acknowledge(login.principal, upTo: cursor) }
        return (session, cursor)
    }

    /// Returns a session that is at least as long on the wire as the answer to this registration; nil if this is not a
    /// registration, or if the nick name is not valid.
    func longestWelcome(on connection: Connection, in environment: GatewayEnvironment) -> Hermes_V1_Session? {
        guard let nickName = newName else { return nil }
        var session = Hermes_V1_Session()
        session.uid = .max
        session.nickName = nickName.rawValue
        session.token = String(repeating: "x", count: AccessToken.bytes)
        session.epoch = .max
        session.headSeq = .max
        session.acknowledgedSeq = .max
        session.serverTimeMs = .max
        Self.describeServer(in: &session, on: connection, in: environment)
        session.heartbeatPriorSeconds = .max
        return session
    }

    private static func describeServer(
        in session: inout Hermes_V1_Session,
        on connection: Connection,
        in environment: GatewayEnvironment
    ) {
        session.idleTimeoutMs = UInt32(clamping: connection.listener.idleTimeout.components.seconds * 1_000)
        session.maxFrameBytes = UInt32(clamping: environment.settings.limits.maxFrameBytes)
        session.serverVersion = environment.serverVersion
    }
}
