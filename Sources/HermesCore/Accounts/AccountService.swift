// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Registers accounts, logs them in, and keeps their devices and tokens. Thread-safe.
///
/// Passwords are hashed off the event loops, a bounded number at once. Guesses and registrations are limited
/// (``LoginThrottle``, ``RegistrationLimit``). The login of a known device, by token or over a protocol without tokens,
/// writes nothing at once: its traces are written later (``LoginLedger``).
///
/// Reads take turns in one of two gates: those of logins by address, so that they never wait behind pages that others
/// read, and all others by account.
package final class AccountService: Sendable {
    /// Ends connections of an account that are logged in and have no inbox. The text is the name (``NickName/key``)
    /// that the account had until now; nil if the end does not concern the name.
    package typealias EndOfTopicClients = @Sendable (UserID, String?, AttachmentEnd, EndedDevices) -> Void

    let store: any AccountStore
    let messages: any MessageStore
    let reads: ReadGate
    /// The turns of logins and registrations. Nobody is refused here: each connection has at most one under way, and
    /// the number of connections is limited.
    let logins = ReadGate(maxRunning: 2, maxWaiting: .max)
    let devices: DeviceRegistry
    let time: any TimeSource
    let settings: AccountSettings
    /// The number of devices of an account.
    package var maxDevices: Int { settings.maxDevices }
    let hasher: PasswordHasher
    /// Creates, lists and revokes invitations.
    package let invitations: InvitationService
    let acknowledged: @Sendable (UserID, DeviceID, DeviceProof) -> UInt64
    private let committer: InboxCommitter?
    let endTopicClients: EndOfTopicClients
    private let clearTopics: @Sendable (_ name: KeptName, _ isLate: Bool) async -> Bool
    /// The names that are not free yet, and when they were given up.
    private let keptNames = Mutex<[KeptName: Duration]>([:])
    /// One task at a time frees a name, so that none removes what the next owner retains.
    private let nameTurns = TaskTurns<String>()
    /// Changes of an account's profile are made one after the other, so that each knows the name before it.
    let profileTurns = TaskTurns<UserID>()
    let throttle: Mutex<LoginThrottle>
    let registrations: Mutex<RegistrationLimit>
    /// An attempt of this node counts against the limits, on all nodes.
    let counted = Hook<CountedAttempt>()
    /// An account is enabled.
    let enabled = Hook<UserID>()
    let ledger = Mutex(LoginLedger())
    /// The accounts disabled since the start; accounts disabled earlier have left nothing in memory.
    let suspended = Mutex(SuspendedAccounts())
    /// The allowances for changes that accounts ask for.
    let changes = Mutex(AccountAllowance.changes)
    private let nextWrite = Mutex(Duration.zero)

    /// Creates the service.
    ///
    /// - Parameters:
    ///   - store: keeps the accounts.
    ///   - messages: knows the positions of inboxes.
    ///   - devices: the connected devices, which are ended when an account changes.
    ///   - time: tells the time.
    ///   - settings: the rules.
    ///   - reads: the turns of reads that are no logins; nil: its own.
    ///   - committer: opens devices in shared commits; nil: each in its own commit.
    ///   - acknowledged: the acknowledgements of a device that are not in the store yet; 0 if unknown. A device that
    ///     acknowledges and reconnects at once gets nothing twice.
    ///   - endTopicClients: ends the connections of an account that are logged in and have no inbox.
    ///   - clearTopics: removes what is retained below a name, and tells whether nothing is left and no connection
    ///     under that name; `isLate`: such connections have had their time to end.
    package init(
        store: any AccountStore,
        messages: any MessageStore,
        devices: DeviceRegistry,
        time: any TimeSource,
        settings: AccountSettings = AccountSettings(),
        reads: ReadGate? = nil,
        committer: InboxCommitter? = nil,
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

    /// An attempt whose charge stays.
    package enum CountedAttempt: Sendable, Hashable {
        case failed(LoginThrottle.Charge)
        /// An account was created. The address is a key from ``NetworkAddress/key(of:)``, nil for a local caller.
        case registered(address: String?)
    }

    // MARK: Names that were given up

    /// The time in which connections under a name that was given up end.
    private static let endOfConnections = Duration.seconds(1)

    /// Reads the names that are not free yet: those that an earlier process did not free, and those of accounts whose
    /// deletion nobody waited for.
    ///
    /// - Parameter isStart: whether the process starts, so that nobody is connected.
    func load(isStart: Bool) async throws(HermesError) {
        let names = try await store.keptNames()
        let since = isStart ? time.uptime() - Self.endOfConnections : time.uptime()
        keptNames.withLock { kept in for name in names where kept[name] == nil { kept[name] = since } }
    }

    /// Frees the names below which nothing is left.
    func freeNames() async {
        let names = keptNames.withLock { kept in
            defer { kept = [:] }
            return kept
        }
        for (name, since) in names { await free(name, givenUpAt: since) }
    }

    /// Frees a name if nothing is left below it; otherwise ``freeNames()`` tries again.
    func free(_ name: KeptName, givenUpAt since: Duration) async {
        await nameTurns.begin(name.key)
        defer { nameTurns.pass(name.key) }
        do throws(HermesError) {
            // Another task may have freed it, and it may have a new owner.
            guard try await store.keeps(name) else { return }
            let isLate = time.uptime() - since >= Self.endOfConnections
            if await clearTopics(name, isLate) { return try await store.free(name) }
        } catch {
            // The store has a trouble, which it reports itself.
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
    /// - Returns: the login; with a new token if it was by password.
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.accountDisabled`, `.loginDelayed`, `.deviceLimitReached`,
    ///   `.forbidden`, `.overloaded`, `.storageUnavailable`.
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
            // The password was right, and has been changed or hashed anew since. It is checked once more.
            let admission = try await admit(credential, device: device.id, address: address)
            return try await open(device, by: admission, isNewToken: isNewToken, readAfter: commits)
        }
    }

    /// Admits a client, and opens its device if the account has it already; for protocols whose clients need not be
    /// devices.
    ///
    /// - Returns: the login; nil if the device is new, or has shown another kind of proof before. Then ``open(_:by:)``
    ///   decides.
    /// - Throws: as ``admit(_:device:address:)``.
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

    /// Opens the device of an admitted client; registers it if it is new.
    ///
    /// - Returns: the login, without a new token.
    /// - Throws: `.notFound`, `.accountDisabled`, `.deviceLimitReached`, `.forbidden`, `.overloaded`,
    ///   `.storageUnavailable`.
    package func open(_ device: DeviceDescription, by admission: Admission) async throws(HermesError) -> Login {
        let commits = committer?.acknowledgementCommits
        guard
            let standing = try await self.standing(
                .account(.id(admission.account.id)),
                device: device.id,
                address: nil,
                source: .account(admission.account.id)
            )
        else { throw HermesError(.notFound, "there is no such account") }
        try check(isEnabled: standing.stored.account)
        let renewed = Admission(
            tokenHash: admission.tokenHash,
            tokenOwner: admission.tokenOwner,
            proof: admission.proof,
            standing: standing,
            stamp: admission.stamp,
            login: admission.login,
            shown: admission.shown
        )
        return try await open(device, by: renewed, isNewToken: false, readAfter: commits)
    }

    /// - Parameter commits: the number of commits with acknowledgements before the store was read.
    func open(
        _ description: DeviceDescription,
        by admission: Admission,
        isNewToken: Bool,
        readAfter commits: UInt64?
    ) async throws(HermesError) -> Login {
        let description = description.clamped
        let user = admission.account.id
        let token = isNewToken ? AccessToken() : nil
        // Read before the store: acknowledgements that are stored meanwhile are not in it any more.
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

    /// Reads for a login, in a turn of its address.
    ///
    /// - Parameters:
    ///   - address: the address's key.
    ///   - source: whose turn it is; nil: the address's.
    func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?,
        source: CommitSource? = nil
    ) async throws(HermesError) -> LoginStanding? {
        try await logins.turn(of: source ?? Self.source(of: address)) { () async throws(HermesError) in
            try await store.standing(key, device: device, address: address)
        }
    }

    /// The position of the inbox of an account that logs in.
    func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await logins.turn(of: .account(user)) { () async throws(HermesError) in
            try await messages.position(of: user)
        }
    }

    /// - Parameter address: the address's key; nil: a local caller.
    static func source(of address: String?) -> CommitSource { .address(address ?? "") }

    /// Records that a known device was seen; does not write.
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

    private func open(_ opening: DeviceOpening) async throws(HermesError) -> Device {
        guard let committer else { return try await store.open(opening, now: time.now()) }
        let result = await withCheckedContinuation { continuation in
            committer.submit(.openDevice(opening) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }

    /// Revokes the token of this login, and ends the pushes to its device; removes the device if asked to. Connections
    /// that depend on the token end; the caller ends its own.
    package func logOut(_ principal: Principal, token: TokenHash?, removeDevice: Bool) async throws(HermesError) {
        if let token { try await store.revoke(.token(token), now: time.now()) }
        let (user, device) = (principal.user, principal.device)
        // The device may have shown another one's token, or none.
        try await store.revoke(removeDevice ? .device(device, of: user) : .pushToken(device, of: user), now: time.now())
        guard token != nil || removeDevice else { return }
        var ended = [device]
        if token != nil, let owner = principal.tokenOwner, owner != device { ended.append(owner) }
        for one in ended {
            devices.end(user, .revoked, .only(one), but: device)
            endTopicClients(user, nil, .revoked, .only(one))
        }
    }

    /// Writes the traces of logins; called periodically, by one caller at a time. Traces that cannot be written wait.
    ///
    /// - Parameter isLast: writes everything; otherwise waits some seconds for more.
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
