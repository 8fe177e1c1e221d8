// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Registers accounts, logs them in, and keeps their devices and tokens. Thread-safe.
///
/// Passwords are hashed off the event loops, a bounded number at once. The number of password guesses
/// (``LoginThrottle``) and the number of registrations (``RegistrationLimit``) are limited. The login of a known
/// device, by token or over a protocol without tokens, does not write to the store at once: its traces are written
/// later (``LoginLedger``).
///
/// Reads wait in one of three gates (``ReadGate``). Two gates are for logins and registrations. Their reads take turns
/// by address, or by account if the account is already known. They never wait for the pages that other callers read.
/// One of these two gates is only for the states of accounts whose clients log in. The third gate is for all other
/// reads, which take turns by account.
package final class AccountService: Sendable {
    /// Ends those connections of an account that are logged in and have no inbox. The second argument is the name
    /// (``NickName/key``) that the account had until now. The name is used only if the account was renamed, disabled or
    /// deleted; otherwise, it may be nil.
    package typealias EndOfTopicClients = @Sendable (UserID, String?, AttachmentEnd, EndedDevices) -> Void

    let store: any AccountStore
    let messages: any MessageStore
    let reads: ReadGate
    /// The gate for the states of accounts whose clients log in or register. Several reads run at once, so that the
    /// store can run them together. The gate refuses no reads, because each connection has at most one login or
    /// registration under way, and the number of connections is limited.
    let standings = ReadGate(maxRunning: ReadGate.maxSharedReads, maxWaiting: .max)
    /// The gate for the other reads of logins and registrations. It also refuses no reads.
    let logins = ReadGate(maxRunning: 2, maxWaiting: .max)
    let devices: DeviceRegistry
    let time: any TimeSource
    let settings: AccountSettings
    /// The largest number of devices that an account may have.
    package var maxDevices: Int { settings.maxDevices }
    let hasher: PasswordHasher
    /// Creates, lists and revokes invitations.
    package let invitations: InvitationService
    let acknowledged: @Sendable (UserID, DeviceID, DeviceProof) -> UInt64
    private let committer: InboxCommitter?
    private let pushTokens: PushTokenService?
    let endTopicClients: EndOfTopicClients
    private let clearTopics: @Sendable (_ name: KeptName, _ isLate: Bool) async -> Bool
    /// The former names that are not free yet, each with the uptime at which the account lost the name.
    private let keptNames = Mutex<[KeptName: Duration]>([:])
    /// Only one task at a time frees a name, so that no task removes publications that the name's next owner has
    /// retained.
    private let nameTurns = TaskTurns<String>()
    /// Changes of one account's profile are made one after the other, so that each change sees the name that the
    /// previous change has set.
    let profileTurns = TaskTurns<UserID>()
    let throttle: Mutex<LoginThrottle>
    let registrations: Mutex<RegistrationLimit>
    /// Called when an attempt on this node counts against the limits of all nodes.
    let counted = Hook<CountedAttempt>()
    /// Called when an account was enabled.
    let enabled = Hook<UserID>()
    let ledger = Mutex(LoginLedger())
    /// The accounts that were disabled since the start of the process. Accounts that were disabled earlier have left
    /// nothing in memory.
    let suspended = Mutex(SuspendedAccounts())
    /// The allowances for changes that accounts request.
    let changes = Mutex(AccountAllowance.changes)
    private let nextWrite = Mutex(Duration.zero)

    /// Creates the service.
    ///
    /// - Parameters:
    ///   - store: keeps the accounts.
    ///   - messages: provides the positions of inboxes.
    ///   - devices: the connected devices. Their connections are ended when an account changes.
    ///   - time: the source of the time.
    ///   - settings: the rules.
    ///   - reads: the gate for reads that are not part of a login; nil if the service is to create the gate.
    ///   - committer: opens devices in commits that other operations share; nil if each device is opened in a separate
    ///     commit.
    ///   - pushTokens: forgets the push tokens that are removed when logins are revoked; nil if no push tokens are in
    ///     memory.
    ///   - acknowledged: returns the last seq that a device has acknowledged and that is not in the store yet; 0 if
    ///     there is none. So a device that acknowledges and reconnects at once gets nothing twice.
    ///   - endTopicClients: ends the connections of an account that are logged in and have no inbox.
    ///   - clearTopics: removes the publications that are retained below a name. Returns whether nothing is retained
    ///     there any more and the account's connections have ended. If `isLate` is true, the connections have had
    ///     enough time to end and are not checked.
    package init(
        store: any AccountStore,
        messages: any MessageStore,
        devices: DeviceRegistry,
        time: any TimeSource,
        settings: AccountSettings = AccountSettings(),
        reads: ReadGate? = nil,
        committer: InboxCommitter? = nil,
        pushTokens: PushTokenService? = nil,
        acknowledged: @escaping @Sendable (UserID, DeviceID, DeviceProof) -> UInt64 = { _, _, _ in 0 },
        endTopicClients: @escaping EndOfTopicClients = { _, _, _, _ in },
        clearTopics: @escaping @Sendable (_ name: KeptName, _ isLate: Bool) async -> Bool = { _, _ in true }
    ) {
        self.store = store
        self.messages = messages
        self.reads = reads ?? ReadGate(maxRunning: 2, maxWaiting: 65_536)
        self.devices = devices
        self.time = time
        self.settings = settings
        self.committer = committer
        self.pushTokens = pushTokens
        self.acknowledged = acknowledged
        self.endTopicClients = endTopicClients
        self.clearTopics = clearTopics
        invitations = InvitationService(store: store, reads: self.reads, time: time)
        hasher = PasswordHasher(
            parameters: settings.passwordParameters,
            maxConcurrent: settings.maxConcurrentHashes,
            maxWaiting: settings.maxWaitingHashes,
            maxWaitingOfOne: settings.maxWaitingHashesOfOne
        )
        throttle = Mutex(LoginThrottle(limits: settings.loginLimits))
        registrations = Mutex(RegistrationLimit(limits: settings.registrationLimits))
    }

    /// An attempt whose charge is not returned.
    package enum CountedAttempt: Sendable, Hashable {
        case failed(LoginThrottle.Charge)
        /// An account was created. The address is a key from ``NetworkAddress/key(of:)``; nil for a local caller.
        case registered(address: String?)
    }

    // MARK: Former names

    /// The time within which the connections under a former name end.
    private static let endOfConnections = Duration.seconds(1)

    /// Reads from the store the names that are not free yet. Such names remain from an earlier process, from a node
    /// that is gone, or from a deletion whose caller stopped waiting.
    ///
    /// - Parameter isStart: whether the process is starting. At that time nobody is connected.
    func load(isStart: Bool) async throws(HermesError) {
        let names = try await store.keptNames()
        let since = isStart ? time.uptime() - Self.endOfConnections : time.uptime()
        keptNames.withLock { kept in for name in names where kept[name] == nil { kept[name] = since } }
    }

    /// Tries to free all former names.
    func freeNames() async {
        let names = keptNames.withLock { kept in
            defer { kept = [:] }
            return kept
        }
        for (name, since) in names { await free(name, givenUpAt: since) }
    }

    /// Removes the publications that are retained below a former name. Frees the name if nothing is retained there any
    /// more; otherwise, ``freeNames()`` tries again.
    func free(_ name: KeptName, givenUpAt since: Duration) async {
        await nameTurns.begin(name.key)
        defer { nameTurns.pass(name.key) }
        do throws(HermesError) {
            // Another task may have freed the name, and the name may have a new owner.
            guard try await store.keeps(name) else { return }
            let isLate = time.uptime() - since >= Self.endOfConnections
            if await clearTopics(name, isLate) { return try await store.free(name) }
        } catch {
            // The store has failed, and reports the failure itself.
        }
        keptNames.withLock { $0[name] = since }
    }

    // MARK: Authentication

    /// Logs in by name and password, or by token, and opens the device.
    ///
    /// A ``Credential/token(_:)`` belongs to one device and logs in as that device, whatever id `device` has.
    ///
    /// - Parameters:
    ///   - credential: the proof.
    ///   - device: the device that logs in.
    ///   - address: the peer's address without port, for limits; nil for local callers.
    /// - Returns: the login. It has a new token if the credential is ``Credential/password(nickName:password:)``.
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.accountDisabled` (also if the account is deleted during the
    ///   login), `.loginDelayed`, `.deviceLimitReached`, `.forbidden`, `.overloaded`, `.storageUnavailable`.
    package func logIn(
        _ credential: Credential,
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        let commits = committer?.acknowledgementCommits
        let admission = try await admit(credential, device: device.id, address: address)
        var device = device
        var isNewToken = false
        switch credential {
        case .token: device.id = admission.tokenOwner ?? device.id
        case .password: isNewToken = true
        case .tokenOfAnyDevice, .passwordOrToken, .claim, .vouched: break
        }
        do throws(HermesError) {
            return try await open(device, by: admission, isNewToken: isNewToken, readAfter: commits)
        } catch {
            guard isNewToken, error.code == .wrongCredentials else { throw error }
            // The password was right, but the stored hash has changed since the check. The password is checked once
            // more.
            let admission = try await admit(credential, device: device.id, address: address)
            return try await open(device, by: admission, isNewToken: isNewToken, readAfter: commits)
        }
    }

    /// Admits a client, and opens its device if the account already has this device. This is for protocols whose
    /// clients need not be devices.
    ///
    /// - Returns: the admission and the login. The login is nil if the device is new, or if an earlier login of the
    ///   device showed another kind of proof. Then ``open(_:by:isLate:)`` decides whether the device may be opened.
    /// - Throws: the errors of ``admit(_:device:address:)``.
    package func admit(
        _ credential: Credential,
        as device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> (admission: Admission, login: Login?) {
        let commits = committer?.acknowledgementCommits
        let admission = try await admit(credential, device: device.id, address: address)
        guard let known = admission.standing.device, known.proof == admission.proof else { return (admission, nil) }
        return (admission, try await open(device, by: admission, isNewToken: false, readAfter: commits))
    }

    /// Opens the device of an admitted client. Registers the device if it is new.
    ///
    /// - Parameter isLate: whether, since the admission, the client has had a connection that the server would have
    ///   ended if the admission had become invalid. If so, the device is not affected if the server ended connections
    ///   of the account before this call. Otherwise, the device is affected if the server has ended such connections
    ///   since the admission.
    /// - Returns: the login, without a new token.
    /// - Throws: `.accountDisabled` (also if the account was deleted after the admission), `.deviceLimitReached`,
    ///   `.forbidden`, `.overloaded`, `.storageUnavailable`.
    package func open(
        _ device: DeviceDescription,
        by admission: Admission,
        isLate: Bool = false
    ) async throws(HermesError) -> Login {
        let commits = committer?.acknowledgementCommits
        let stamp = isLate ? devices.stamp() : admission.stamp
        guard
            let standing = try await self.standing(
                .account(.id(admission.account.id)),
                device: device.id,
                address: nil,
                source: .account(admission.account.id)
            )
        else { throw Self.deletedMeanwhile }
        try check(isEnabled: standing.stored.account)
        let renewed = admission.renewed(with: standing, stamp: stamp)
        return try await open(device, by: renewed, isNewToken: false, readAfter: commits)
    }

    /// Returns the login for a device that attaches long after its login. If the server ended connections of the
    /// account before this call, the returned login is not affected. So if the device's connection had to end, the
    /// caller must have ended it.
    package func continued(_ login: Login) -> Login { login.continued(at: devices.stamp()) }

    /// - Parameter commits: the value of ``InboxCommitter/acknowledgementCommits`` before the store was read. If that
    ///   value has changed since then, the store is read again.
    func open(
        _ description: DeviceDescription,
        by admission: Admission,
        isNewToken: Bool,
        readAfter commits: UInt64?
    ) async throws(HermesError) -> Login {
        let description = description.clamped
        let user = admission.account.id
        let token = isNewToken ? AccessToken() : nil
        // This is read before the store, so that an acknowledgement that is stored meanwhile is seen by at least one of
        // the two reads.
        let acknowledged = acknowledged(user, description.id, admission.proof)
        var position = admission.standing.position
        var device: Device
        if token == nil, let known = admission.standing.device, known.description.id == description.id,
            known.proof == admission.proof
        {
            var fresh = known
            if committer?.acknowledgementCommits != commits,
                let again = try await self.standing(
                    .account(.id(user)),
                    device: description.id,
                    address: nil,
                    source: .account(user)
                )
            {
                fresh = again.device ?? known
                position = again.position
            }
            device = seen(fresh, as: description, of: user)
        } else {
            device = try await open(
                DeviceOpening(
                    user: user,
                    device: description,
                    token: token?.hash,
                    shown: admission.shown,
                    proof: admission.proof,
                    maxDevices: settings.maxDevices
                )
            )
            position = try await self.position(of: user)
        }
        device.cursor = max(device.cursor, min(acknowledged, position.head))
        return Login(
            principal: admission.principal(on: description.id, newToken: token?.hash),
            token: token?.text,
            tokenHash: token?.hash ?? admission.tokenHash,
            device: device,
            position: position
        )
    }

    /// Reads the stored state for a login. The read waits until it is the turn of `source`.
    ///
    /// - Parameters:
    ///   - address: the key of the address (``NetworkAddress/key(of:)``); nil for a local caller.
    ///   - source: the source whose turn the read uses; nil for the turn of the address.
    func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?,
        source: CommitSource? = nil
    ) async throws(HermesError) -> LoginStanding? {
        try await standings.turn(of: source ?? Self.source(of: address)) { () async throws(HermesError) in
            try await store.standing(key, device: device, address: address)
        }
    }

    /// Returns the position of the inbox of an account that logs in.
    func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await standings.turn(of: .account(user)) { () async throws(HermesError) in
            try await messages.position(of: user)
        }
    }

    /// Whether the inbox of an account that logs in has an entry that the client has got.
    ///
    /// - Returns: true also if no entry with this seq is stored any more.
    /// - Throws: `.storageUnavailable`.
    package func has(_ entry: KnownEntry, inInboxOf user: UserID) async throws(HermesError) -> Bool {
        guard entry.seq > 0 else { return true }
        // Expired entries that are still stored count, too.
        let page = try await logins.turn(of: .account(user)) { () async throws(HermesError) in
            try await messages.entries(of: user, after: InboxRequests.storable(entry.seq - 1), limit: 1)
        }
        guard entry.seq <= page.position.head else { return false }
        guard let stored = page.entries.first, stored.seq == entry.seq else { return true }
        return entry.matches(stored)
    }

    /// - Parameter address: the key of the address; nil for a local caller.
    static func source(of address: String?) -> CommitSource { .address(address ?? "") }

    /// Records in memory that a known device was seen, and returns the updated device. Does not write to the store.
    private func seen(_ known: Device, as description: DeviceDescription, of user: UserID) -> Device {
        let now = time.now()
        var device = ledger.withLock { $0.renewed(known, of: user) }
        let isDue = now >= device.lastSeenAt.advanced(by: LoginLedger.deviceInterval)
        if isDue || device.description != description {
            ledger.withLock { $0.note(.device(description, of: user, at: now)) }
        }
        device.description = description
        device.lastSeenAt = now
        return device
    }

    /// The refusal of a login whose account was deleted after the check of the credential.
    private static let deletedMeanwhile = HermesError(.accountDisabled, "this account has just been deleted")

    private func open(_ opening: DeviceOpening) async throws(HermesError) -> Device {
        do throws(HermesError) {
            return try await commit(opening)
        } catch {
            // The credential was right, so the account existed until now.
            throw error.code == .notFound ? Self.deletedMeanwhile : error
        }
    }

    private func commit(_ opening: DeviceOpening) async throws(HermesError) -> Device {
        guard let committer else { return try await store.open(opening, now: time.now()) }
        let result = await withCheckedContinuation { continuation in
            committer.submit(.openDevice(opening) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }

    /// Revokes the token of this login, ends the pushes to its device, and removes the device if `removeDevice` is
    /// true. Also ends the other connections that depend on the token or on the removed device. The caller ends its own
    /// connection.
    ///
    /// - Parameter removeDevice: whether to remove the device. The removal counts as a change of the account. If the
    ///   account has made too many changes, the log-out succeeds nevertheless, and the device stays.
    package func logOut(_ principal: Principal, token: TokenHash?, removeDevice: Bool) async throws(HermesError) {
        if let token { try await revoke(.token(token)) }
        let (user, device) = (principal.user, principal.device)
        let removeDevice = removeDevice && mayChange(user)
        do throws(HermesError) {
            // The device may have shown the token of another device, or no token. So the device's own push token must
            // be revoked explicitly.
            try await revoke(removeDevice ? .device(device, of: user) : .pushToken(device, of: user))
        } catch {
            // The token is revoked, even if the rest must be tried again. The caller's own connection stays for the
            // answer: if this connection ended as revoked, the log-out would look like a success.
            if token != nil { endDependents(of: principal, showedToken: true, sparesTopicClient: true) }
            throw error
        }
        if token != nil || removeDevice { endDependents(of: principal, showedToken: token != nil) }
    }

    /// Revokes logins, and forgets the push tokens that are removed with them.
    func revoke(_ scope: RevocationScope) async throws(HermesError) {
        let mark = pushTokens?.mark
        try await store.revoke(scope, now: time.now())
        if let mark { pushTokens?.forget(scope, since: mark) }
    }

    /// Changes an account, and forgets the push tokens that are removed by the change.
    func update(_ user: UserID, _ change: AccountChange) async throws(HermesError) -> Account {
        let mark = pushTokens?.mark
        let account = try await store.update(user, change)
        if let mark, let scope = change.revokes { pushTokens?.forget(scope, since: mark) }
        return account
    }

    /// Ends the connections that depend on a login's device. If the login showed a token, also ends the connections
    /// that depend on the token's device. The login's own connection stays, because the caller ends this connection.
    ///
    /// - Parameter sparesTopicClient: whether the login's own MQTT client stays, too.
    private func endDependents(of principal: Principal, showedToken: Bool, sparesTopicClient: Bool = false) {
        var ended = [principal.device]
        if showedToken, let owner = principal.tokenOwner, owner != principal.device { ended.append(owner) }
        for one in ended {
            devices.end(principal.user, .revoked, .only(one), but: principal.login)
            let spared = sparesTopicClient ? principal.login : nil
            endTopicClients(principal.user, nil, .revoked, spared.map { .onlyBut(one, $0) } ?? .only(one))
        }
    }

    /// Writes the traces of logins. Traces that cannot be written wait for the next call. This is called periodically,
    /// by one caller at a time.
    ///
    /// - Parameter isLast: whether everything is written now; otherwise, this call writes only if the last write began
    ///   at least 5 s ago.
    package func writeTraces(isLast: Bool = false) async {
        let now = time.uptime()
        let isDue = nextWrite.withLock { next in
            guard isLast || now >= next else { return false }
            next = now + .seconds(5)
            return true
        }
        guard isDue else { return }
        while !Task.isCancelled || isLast {
            let traces = ledger.withLock { $0.take(100) }
            if traces.isEmpty { return }
            do {
                try await store.note(traces)
                ledger.withLock { $0.written() }
            } catch {
                return ledger.withLock { $0.putBack() }
            }
        }
    }

    func end(_ account: Account, _ reason: AttachmentEnd, _ devices: EndedDevices) {
        self.devices.end(account.id, reason, devices)
        endTopicClients(account.id, account.nickName.key, reason, devices)
    }

    func end(_ user: UserID, _ reason: AttachmentEnd, _ devices: EndedDevices) {
        self.devices.end(user, reason, devices)
        endTopicClients(user, nil, reason, devices)
    }
}
