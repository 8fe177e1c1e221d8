// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Registers accounts, logs them in, keeps their devices and tokens. Safe to call from anywhere.
///
/// Passwords are hashed off the event loops, a bounded number at once; failed logins are delayed per account and per
/// address (``LoginThrottle``).
package final class AccountService: Sendable {
    private let store: any AccountStore
    private let messages: any MessageStore
    let sessions: SessionRegistry
    private let time: any TimeSource
    private let settings: AccountSettings
    private let acknowledged: @Sendable (UserID, DeviceID) -> UInt64
    private let endTopicClients: @Sendable (String, SessionEnd, EndedDevices) -> Void
    private let hasher: PasswordHasher
    private let throttle: Mutex<LoginThrottle>

    /// Creates the service.
    ///
    /// - Parameters:
    ///   - store: keeps the accounts.
    ///   - messages: tells where inboxes stand.
    ///   - sessions: whose sessions end when an account changes.
    ///   - time: tells the time.
    ///   - settings: the rules.
    ///   - acknowledged: how far a device has come by what is not in the store yet; 0 if unknown. A device that
    ///     acknowledges and comes back at once gets nothing twice.
    ///   - endTopicClients: ends the connections of an account, by ``NickName/key``, that are logged in and have no inbox.
    package init(
        store: any AccountStore,
        messages: any MessageStore,
        sessions: SessionRegistry,
        time: any TimeSource,
        settings: AccountSettings = AccountSettings(),
        acknowledged: @escaping @Sendable (UserID, DeviceID) -> UInt64 = { _, _ in 0 },
        endTopicClients: @escaping @Sendable (String, SessionEnd, EndedDevices) -> Void = { _, _, _ in }
    ) {
        self.store = store
        self.messages = messages
        self.sessions = sessions
        self.time = time
        self.settings = settings
        self.acknowledged = acknowledged
        self.endTopicClients = endTopicClients
        hasher = PasswordHasher(
            parameters: settings.passwordParameters,
            maxConcurrent: settings.maxConcurrentHashes,
            maxWaiting: settings.maxWaitingHashes
        )
        throttle = Mutex(LoginThrottle(limits: settings.loginLimits))
    }

    // MARK: Who are you

    /// Creates an account and opens its first device.
    ///
    /// - Parameters:
    ///   - nickName: as the user typed it.
    ///   - password: in the clear; 6 to 256 bytes.
    ///   - device: the device that registers.
    ///   - address: the peer's address without port, for limits; nil for local callers.
    /// - Returns: the login, with a new token.
    /// - Throws: `.nameTaken`, `.invalidArgument`, `.registrationClosed`, `.loginDelayed`, `.overloaded`,
    ///   `.storageUnavailable`.
    package func register(
        nickName: String,
        password: String,
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        guard settings.registrationOpen else {
            throw HermesError(.registrationClosed, "this server does not take registrations")
        }
        let stamp = sessions.stamp()
        let account = try await create(nickName: nickName, password: password, address: address)
        return try await open(account, device, isNewToken: true, tokenHash: nil, stamp: stamp)
    }

    /// Creates an account without a device, whether or not registration is open (administration).
    ///
    /// - Throws: `.nameTaken`, `.invalidArgument`, `.storageUnavailable`.
    package func createAccount(nickName: String, password: String) async throws(HermesError) -> Account {
        try await create(nickName: nickName, password: password, address: nil)
    }

    private func create(nickName: String, password: String, address: String?) async throws(HermesError) -> Account {
        let name = try NickName(nickName)
        try check(newPassword: password)
        let address = address.map(LoginThrottle.addressKey)
        try begin(account: nil, address: address)
        // Looked up before the hash is computed, which is dear; the store has the last word.
        let isTaken = try await store.find(.nickName(name)) != nil
        do throws(HermesError) {
            if isTaken { throw HermesError(.nameTaken, "this nick name is taken; choose another") }
            let hash = try await hasher.hash(password)
            return try await store.create(NewAccount(nickName: name, password: hash), now: time.now())
        } catch {
            // Counted, so that nobody can try out names at full speed.
            if error.code == .nameTaken { throttle.withLock { $0.failed(address: address, now: time.uptime()) } }
            throw error
        }
    }

    /// Logs in by name and password, or by token, and opens the device.
    ///
    /// A ``Credential/token(_:)`` was given to one device and stands for that one, whatever id `device` has.
    ///
    /// - Parameters:
    ///   - credential: the proof.
    ///   - device: the device that logs in.
    ///   - address: the peer's address without port, for limits; nil for local callers.
    /// - Returns: the login; with a new token if it was by password.
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.accountDisabled`, `.loginDelayed`, `.overloaded`,
    ///   `.storageUnavailable`.
    package func logIn(
        _ credential: Credential,
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        let stamp = sessions.stamp()
        let address = address.map(LoginThrottle.addressKey)
        switch credential {
        case .password(let nickName, let password):
            let account = try await check(nickName: nickName, password: password, address: address)
            try await makeRoom(for: device.id, of: account.id)
            return try await open(account, device, isNewToken: true, tokenHash: nil, stamp: stamp)
        case .token(let text):
            let (account, owner, hash) = try await check(token: text, address: address)
            var device = device
            device.id = owner.device
            return try await open(account, device, isNewToken: false, tokenHash: hash, stamp: stamp)
        case .tokenOfAnyDevice(let text):
            let (account, _, hash) = try await check(token: text, address: address)
            try await makeRoom(for: device.id, of: account.id)
            return try await open(account, device, isNewToken: false, tokenHash: hash, stamp: stamp)
        case .passwordOrToken(let nickName, let secret):
            let (account, hash) = try await check(nickName: nickName, secret: secret, address: address)
            try await makeRoom(for: device.id, of: account.id)
            return try await open(account, device, isNewToken: false, tokenHash: hash, stamp: stamp)
        case .claim(let user):
            let account = try await check(claim: user, address: address)
            try await checkClaim(of: device, of: user)
            return try await open(account, device, isNewToken: false, tokenHash: nil, stamp: stamp)
        }
    }

    /// Checks a credential and opens no device: for clients that are none.
    ///
    /// - Throws: as ``logIn(_:device:address:)``.
    package func verify(_ credential: Credential, address: String?) async throws(HermesError) -> Account {
        let address = address.map(LoginThrottle.addressKey)
        switch credential {
        case .password(let nickName, let password):
            return try await check(nickName: nickName, password: password, address: address)
        case .token(let text), .tokenOfAnyDevice(let text):
            return try await check(token: text, address: address).0
        case .passwordOrToken(let nickName, let secret):
            return try await check(nickName: nickName, secret: secret, address: address).0
        case .claim(let user):
            return try await check(claim: user, address: address)
        }
    }

    /// Runs a check that is made elsewhere; its failures count against the address as those of logins do.
    ///
    /// A check that succeeds is never delayed, for the address may be shared: it must not be possible to guess.
    package func limitingFailures<Value: Sendable>(
        of address: String?,
        _ check: () async throws(HermesError) -> Value
    ) async throws(HermesError) -> Value {
        do throws(HermesError) {
            return try await check()
        } catch {
            guard error.code == .invalidToken || error.code == .wrongCredentials else { throw error }
            let address = address.map(LoginThrottle.addressKey)
            try begin(account: nil, address: address)
            throttle.withLock { $0.failed(address: address, now: time.uptime()) }
            throw error
        }
    }

    private func check(claim user: UserID, address: String?) async throws(HermesError) -> Account {
        guard let stored = try await store.find(.id(user)) else { throw try refused(address: address) }
        try checkEnabled(stored.account)
        return stored.account
    }

    /// The token is looked up first and counts as no failure: a password may look like one.
    private func check(
        nickName: String,
        secret: String,
        address: String?
    ) async throws(HermesError) -> (Account, TokenHash?) {
        if secret.utf8.count == AccessToken.bytes, let hash = TokenHash(ofToken: secret),
            let owner = try await store.owner(of: hash), let stored = try await store.find(.id(owner.user))
        {
            guard let name = try? NickName(nickName), name == stored.account.nickName else {
                throw try refused(address: address)
            }
            try checkEnabled(stored.account)
            return (stored.account, hash)
        }
        return (try await check(nickName: nickName, password: secret, address: address), nil)
    }

    private func check(nickName: String, password: String, address: String?) async throws(HermesError) -> Account {
        let name: NickName
        do throws(HermesError) { name = try NickName(nickName) } catch { throw try refused(address: address) }
        guard password.utf8.count <= settings.maxPasswordBytes else { throw try refused(address: address) }
        try begin(account: name.key, address: address)
        let stored: StoredAccount?
        let isRight: Bool
        do throws(HermesError) {
            stored = try await store.find(.nickName(name))
            isRight = try await hasher.verify(password, against: stored?.password)
        } catch {
            throttle.withLock { $0.undecided(account: name.key) }
            throw error
        }
        guard let stored, isRight else { throw try refused(address: address) }
        throttle.withLock { $0.succeeded(account: name.key) }
        try checkEnabled(stored.account)
        return stored.account
    }

    private func check(
        token: String,
        address: String?
    ) async throws(HermesError) -> (Account, TokenOwner, TokenHash) {
        if let hash = TokenHash(ofToken: token), let owner = try await store.owner(of: hash),
            let stored = try await store.find(.id(owner.user))
        {
            try checkEnabled(stored.account)
            return (stored.account, owner, hash)
        }
        // A right token is never delayed: it cannot be guessed, and the address may be shared.
        try begin(account: nil, address: address)
        throttle.withLock { $0.failed(address: address, now: time.uptime()) }
        throw HermesError(.invalidToken, "the token is unknown or revoked; log in with the password")
    }

    private func refused(address: String?) throws(HermesError) -> HermesError {
        try begin(account: nil, address: address)
        throttle.withLock { $0.failed(address: address, now: time.uptime()) }
        return HermesError(.wrongCredentials, "wrong name or password")
    }

    private func begin(account: String?, address: String?) throws(HermesError) {
        let now = time.uptime()
        guard let delay = throttle.withLock({ $0.begin(account: account, address: address, now: now) }) else { return }
        throw HermesError(.loginDelayed, "too many failed logins; wait before the next", retryAfter: delay)
    }

    private func checkEnabled(_ account: Account) throws(HermesError) {
        if account.isDisabled { throw HermesError(.accountDisabled, "this account is disabled") }
    }

    private func open(
        _ account: Account,
        _ description: DeviceDescription,
        isNewToken: Bool,
        tokenHash: TokenHash?,
        stamp: UInt64
    ) async throws(HermesError) -> Login {
        let token = isNewToken ? AccessToken() : nil
        // Asked before: what is in the store meanwhile is not told any more.
        let acknowledged = acknowledged(account.id, description.id)
        var device = try await store.open(description.clamped, of: account.id, token: token?.hash, now: time.now())
        let position = try await messages.position(of: account.id)
        device.cursor = max(device.cursor, min(acknowledged, position.head))
        return Login(
            principal: Principal(
                user: account.id,
                nickName: account.nickName,
                device: device.description.id,
                loginStamp: stamp
            ),
            token: token?.text,
            tokenHash: token?.hash ?? tokenHash,
            device: device,
            position: position
        )
    }

    /// Revokes the token of this session, and removes its device if asked. The caller ends its own connection.
    package func logOut(_ principal: Principal, token: TokenHash?, removeDevice: Bool) async throws(HermesError) {
        if let token { try await store.revoke(.token(token), now: time.now()) }
        if removeDevice { try await store.revoke(.device(principal.device, of: principal.user), now: time.now()) }
    }

    // MARK: Accounts

    /// Finds an account; nil if there is none.
    package func account(_ key: AccountKey) async throws(HermesError) -> Account? { try await store.find(key)?.account }

    /// Accounts, ascending by id.
    package func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] {
        try await store.accounts(after: id, limit: min(max(1, limit), 1000))
    }

    /// Changes the profile. Another name ends the account's MQTT connections and kept sessions, which go by the name.
    package func changeProfile(
        of user: UserID,
        nickName: String?,
        avatarURL: String?
    ) async throws(HermesError) -> Account {
        var change = AccountChange()
        if let nickName { change.nickName = try NickName(nickName) }
        if let avatarURL {
            try Account.check(avatarURL: avatarURL)
            change.avatarURL = avatarURL
        }
        guard change.nickName != nil, let old = try await store.find(.id(user))?.account.nickName else {
            return try await store.update(user, change)
        }
        let account = try await store.update(user, change)
        if account.nickName.key != old.key { endTopicClients(old.key, .accountRenamed, .all) }
        return account
    }

    /// Disables or enables an account; disabling ends its sessions.
    package func setDisabled(_ user: UserID, _ isDisabled: Bool) async throws(HermesError) {
        let account = try await store.update(user, AccountChange(isDisabled: isDisabled))
        if isDisabled { end(account, .accountDisabled, .all) }
    }

    /// Locks an account out for good, before it is deleted: from here on nobody logs in to it.
    ///
    /// - Throws: `.notFound`, `.storageUnavailable`.
    func close(_ user: UserID) async throws(HermesError) {
        let account = try await store.update(user, AccountChange(isDisabled: true))
        end(account, .accountDeleted, .all)
    }

    private func end(_ account: Account, _ reason: SessionEnd, _ devices: EndedDevices) {
        sessions.end(account.id, reason, devices)
        endTopicClients(account.nickName.key, reason, devices)
    }

    private func end(_ user: UserID, _ reason: SessionEnd, _ devices: EndedDevices) async throws(HermesError) {
        sessions.end(user, reason, devices)
        guard let stored = try await store.find(.id(user)) else { return }
        endTopicClients(stored.account.nickName.key, reason, devices)
    }

    // MARK: Passwords

    /// Changes the password after checking the old one; revokes all other tokens and ends the other sessions.
    ///
    /// - Parameters:
    ///   - principal: whose password; its own session goes on.
    ///   - old: the password so far.
    ///   - new: the new one.
    ///   - token: the token of this session (``Login/tokenHash``), which stays valid; nil: all are revoked.
    /// - Throws: `.wrongCredentials`, `.invalidArgument`, `.loginDelayed`, `.overloaded`, `.storageUnavailable`.
    package func changePassword(
        of principal: Principal,
        old: String,
        new: String,
        keeping token: TokenHash? = nil
    ) async throws(HermesError) {
        try check(newPassword: new)
        guard let stored = try await store.find(.id(principal.user)) else {
            throw HermesError(.notFound, "there is no such account")
        }
        let key = stored.account.nickName.key
        try begin(account: key, address: nil)
        let isRight: Bool
        do throws(HermesError) {
            isRight =
                old.utf8.count <= settings.maxPasswordBytes
                ? try await hasher.verify(old, against: stored.password) : false
        } catch {
            throttle.withLock { $0.undecided(account: key) }
            throw error
        }
        guard isRight else { throw HermesError(.wrongCredentials, "the old password is wrong") }
        throttle.withLock { $0.succeeded(account: key) }
        let hash = try await hasher.hash(new)
        _ = try await store.update(principal.user, AccountChange(password: hash))
        try await store.revoke(.allTokens(of: principal.user, except: token), now: time.now())
        end(stored.account, .revoked, .allBut(principal.device))
    }

    /// Sets a password without the old one (administration); revokes all tokens and ends all sessions.
    package func setPassword(of user: UserID, to password: String) async throws(HermesError) {
        try check(newPassword: password)
        let hash = try await hasher.hash(password)
        let account = try await store.update(user, AccountChange(password: hash))
        try await store.revoke(.allTokens(of: user, except: nil), now: time.now())
        end(account, .revoked, .all)
    }

    /// Whether a password may be set.
    /// - Throws: `.invalidArgument`.
    package func check(newPassword password: String) throws(HermesError) {
        guard (settings.minPasswordBytes...settings.maxPasswordBytes).contains(password.utf8.count) else {
            let range = "\(settings.minPasswordBytes) to \(settings.maxPasswordBytes)"
            throw HermesError(.invalidArgument, "the password must have \(range) bytes")
        }
    }

    // MARK: Tokens

    /// Issues a token for a device without a password (administration); registers the device if it is new.
    ///
    /// - Throws: `.notFound`, `.accountDisabled`, `.storageUnavailable`.
    package func issueToken(for device: DeviceDescription, of user: UserID) async throws(HermesError) -> String {
        guard let stored = try await store.find(.id(user)) else {
            throw HermesError(.notFound, "there is no such account")
        }
        try checkEnabled(stored.account)
        try await makeRoom(for: device.id, of: user)
        let token = AccessToken()
        _ = try await store.open(device.clamped, of: user, token: token.hash, now: time.now())
        return token.text
    }

    /// Revokes all tokens of an account and ends its sessions (administration).
    package func revokeTokens(of user: UserID) async throws(HermesError) {
        try await store.revoke(.allTokens(of: user, except: nil), now: time.now())
        try await end(user, .revoked, .all)
    }

    // MARK: Devices

    /// The devices of an account, oldest first.
    package func devices(of user: UserID) async throws(HermesError) -> [Device] { try await store.devices(of: user) }

    /// Removes a device, revokes its tokens and ends its session.
    ///
    /// - Throws: `.notFound` if the account has no such device, `.storageUnavailable`.
    package func removeDevice(_ device: DeviceID, of user: UserID) async throws(HermesError) {
        let devices = try await store.devices(of: user)
        guard devices.contains(where: { $0.description.id == device }) else {
            throw HermesError(.notFound, "the account has no device \"\(device.rawValue)\"")
        }
        try await store.revoke(.device(device, of: user), now: time.now())
        try await end(user, .revoked, .only(device))
    }

    /// What is merely claimed drives out no device and takes over none that proved who it is.
    private func checkClaim(of device: DeviceDescription, of user: UserID) async throws(HermesError) {
        let devices = try await store.devices(of: user)
        if let known = devices.first(where: { $0.description.id == device.id }) {
            guard known.description.platform == device.clamped.platform else {
                throw HermesError(.forbidden, "this device id belongs to another device of the account; choose another")
            }
        } else if devices.count >= settings.maxDevices {
            throw HermesError(.forbidden, "the account has \(devices.count) devices; remove one first")
        }
    }

    /// Removes the device that was not seen for longest if a new one would be one too many.
    private func makeRoom(for device: DeviceID, of user: UserID) async throws(HermesError) {
        let devices = try await store.devices(of: user)
        guard devices.count >= settings.maxDevices, !devices.contains(where: { $0.description.id == device }) else {
            return
        }
        let attached = Set(sessions.attachedDevices(of: user))
        let away = devices.filter { !attached.contains($0.description.id) }
        let oldest = (away.isEmpty ? devices : away).min { $0.lastSeenAt < $1.lastSeenAt }
        if let oldest { try await removeDevice(oldest.description.id, of: user) }
    }
}
