// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Changes to accounts, passwords, tokens and devices.
extension AccountService {
    // MARK: Accounts

    /// Finds an account; returns nil if there is none.
    ///
    /// - Parameter source: the account or client that makes the request. The read waits for a turn of this source
    ///   (``ReadGate``).
    package func account(
        _ key: AccountKey,
        for source: CommitSource = .server
    ) async throws(HermesError) -> Account? {
        try await find(key, for: source)?.account
    }

    /// Finds the account for a login. A third party has proved the account's name. Returns nil if there is no such
    /// account.
    ///
    /// - Parameter address: the peer's address without port; nil for local callers.
    func account(_ name: NickName, loggingInAt address: String?) async throws(HermesError) -> Account? {
        try await logins.turn(of: Self.source(of: address.map(NetworkAddress.key))) { () async throws(HermesError) in
            try await store.find(.nickName(name))
        }?.account
    }

    private func find(_ key: AccountKey, for source: CommitSource) async throws(HermesError) -> StoredAccount? {
        try await reads.turn(of: source) { () async throws(HermesError) in try await store.find(key) }
    }

    /// Returns accounts in ascending order of their ids.
    package func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] {
        try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.accounts(after: id, limit: min(max(1, limit), 1000))
        }
    }

    /// Finds the accounts whose names contain a given text, in ascending order of their ids. Case does not matter. One
    /// call looks at a bounded number of accounts, and does not delay commits.
    ///
    /// - Returns: the accounts that were found, and the id after which to continue. The id is nil if there are no more
    ///   accounts to look at.
    package func accounts(
        named text: String,
        after id: UserID?,
        limit: Int
    ) async throws(HermesError) -> (found: [Account], next: UserID?) {
        let key = NickName.searchKey(text)
        guard !key.isEmpty else { return ([], nil) }
        return try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.accounts(after: id, named: key, limit: min(max(1, limit), 1000))
        }
    }

    /// Searches all accounts for devices whose ids or names contain a given text. The case of ASCII letters does not
    /// matter. The order of the result is undefined. One call looks only at a bounded number of the newest devices, and
    /// does not delay commits.
    package func devices(containing text: String, limit: Int) async throws(HermesError) -> [OwnedDevice] {
        guard !text.isEmpty else { return [] }
        return try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.devices(containing: Group.searchKey(text), limit: min(max(1, limit), 1000))
        }
    }

    /// Changes an account's profile at the request of its owner. If registration is closed, only the operator may
    /// change names. The reason is that topic rules, tokens of other issuers and certificates refer to accounts by
    /// name, and users must not be able to take such a name.
    ///
    /// - Throws: `.forbidden` for a new name if registration is closed; `.rateLimited`; and the errors of
    ///   ``changeProfile(of:nickName:avatarURL:)``.
    package func changeOwnProfile(
        of user: UserID,
        nickName: String?,
        avatarURL: String?
    ) async throws(HermesError) -> Account {
        try chargeChange(user)
        return try await changeProfile(of: user, nickName: nickName, avatarURL: avatarURL, isOwn: true)
    }

    /// Changes an account's profile. A new name ends the account's MQTT connections, because their permissions depend
    /// on the name. The account's kept sessions stay.
    package func changeProfile(
        of user: UserID,
        nickName: String?,
        avatarURL: String?
    ) async throws(HermesError) -> Account {
        try await changeProfile(of: user, nickName: nickName, avatarURL: avatarURL, isOwn: false)
    }

    private func changeProfile(
        of user: UserID,
        nickName: String?,
        avatarURL: String?,
        isOwn: Bool
    ) async throws(HermesError) -> Account {
        var change = AccountChange()
        if let nickName { change.nickName = try NickName(nickName) }
        if let avatarURL {
            try Account.check(avatarURL: avatarURL)
            change.avatarURL = avatarURL
        }
        await profileTurns.begin(user)
        defer { profileTurns.pass(user) }
        guard change.nickName != nil, let old = try await find(.id(user), for: .account(user))?.account.nickName
        else {
            return try await store.update(user, change)
        }
        // A change of only the spelling, such as a change of case, is still allowed.
        if isOwn, settings.registration == .closed, change.nickName != old {
            throw HermesError(.forbidden, "only the operator can change names here (accounts.registration: closed)")
        }
        // An account whose name would now be refused may still change the spelling of that name.
        if let new = change.nickName, new.key != old.key { try new.checkAsNew() }
        let account = try await store.update(user, change)
        if account.nickName.rawValue != old.rawValue { devices.rename(user, to: account.nickName) }
        if account.nickName.key != old.key {
            endTopicClients(user, old.key, .accountRenamed, .all)
            // Usually this frees the old name before the call returns; otherwise the housekeeping frees it later.
            await free(KeptName(key: old.key, user: user), givenUpAt: time.uptime())
        }
        return account
    }

    /// Disables or enables an account; disabling ends its connections.
    package func setDisabled(_ user: UserID, _ isDisabled: Bool) async throws(HermesError) {
        suspended.withLock { $0.changeStarted(user) }
        let result: Result<Account, HermesError>
        do throws(HermesError) {
            result = .success(try await store.update(user, AccountChange(isDisabled: isDisabled)))
        } catch {
            result = .failure(error)
        }
        let isStored = if case .success = result { true } else { false }
        let change = suspended.withLock { $0.changeEnded(user, isDisabled: isStored ? isDisabled : nil) }
        if isDisabled, case .success(let account) = result { end(account, .accountDisabled, .all) }
        // If changes overlap, only the store shows which change was the last.
        if let change {
            do throws(HermesError) {
                let stored = try await store.find(.id(user))
                suspended.withLock { $0.read(user, isDisabled: stored?.account.isDisabled, after: change) }
            } catch {
                // The next change of the account reads the store again.
            }
        }
        if case .failure(let error) = result { throw error }
        if !isDisabled { enabled(user) }
    }

    /// Whether an account was disabled since the start of the process and is still disabled. Does not read the store.
    /// This function is meant for objects that the account left in memory, such as wills.
    package func isSuspended(_ user: UserID) -> Bool { suspended.withLock { $0.users.contains(user) } }

    /// Records that an account is deleted, and that its kept sessions have ended.
    func deleted(_ user: UserID) {
        let now = time.uptime()
        suspended.withLock { $0.deleted(user, now: now) }
    }

    /// Forgets the accounts that were deleted a while ago. This is called about once a second.
    func forgetDeleted() {
        let now = time.uptime()
        suspended.withLock { $0.forget(now: now) }
    }

    /// Disables an account before its deletion and ends its connections. Nobody can log in to the account from now on.
    ///
    /// - Returns: the account's name, which the deletion reserves.
    /// - Throws: `.notFound`, `.storageUnavailable`.
    func close(_ user: UserID) async throws(HermesError) -> KeptName {
        let account = try await store.update(user, AccountChange(isDisabled: true))
        end(account, .accountDeleted, .all)
        return KeptName(key: account.nickName.key, user: user)
    }

    // MARK: Passwords

    /// Changes an account's password after a check of the old password. Revokes all other tokens and ends the other
    /// connections.
    ///
    /// - Parameters:
    ///   - principal: the account, and the connection that stays.
    ///   - old: the present password of the account.
    ///   - new: the new password.
    ///   - token: the token of this login (``Login/tokenHash``), which stays valid; nil if all tokens are to be
    ///     revoked.
    /// - Throws: `.wrongCredentials`, `.invalidArgument`, `.loginDelayed`, `.overloaded`, `.storageUnavailable`.
    package func changePassword(
        of principal: Principal,
        old: String,
        new: String,
        keeping token: TokenHash? = nil
    ) async throws(HermesError) {
        try check(newPassword: new)
        guard let stored = try await find(.id(principal.user), for: .account(principal.user)) else {
            throw HermesError(.notFound, "there is no such account")
        }
        let key = stored.account.nickName.key
        let attempt = LoginThrottle.Attempt.passwordChange(of: key)
        let isRight =
            try canBeRight(old)
            ? await verify(old, against: stored.password, .known(account: key, address: nil), attempt).isRight : false
        guard isRight else { throw HermesError(.wrongCredentials, "the old password is wrong") }
        let password = try await hasher.hash(new, .change(account: key))
        var change = AccountChange(password: password)
        // If the password was changed meanwhile, the old password must no longer allow this change.
        change.expectedPassword = stored.password
        change.revokes = .allTokens(of: principal.user, except: token)
        _ = try await update(principal.user, change)
        // The caller's connection stays, whatever proof its login showed, because the caller has just shown the
        // password.
        if token == nil || principal.shown.token != token { principal.prove(by: .password(password)) }
        end(stored.account, .revoked, principal.login.map(EndedDevices.allBut) ?? .all)
    }

    /// Sets an account's password for the operator, without the old password. Revokes all tokens and ends all
    /// connections.
    package func setPassword(of user: UserID, to password: String) async throws(HermesError) {
        try check(newPassword: password)
        var change = AccountChange(password: try await hasher.hash(password))
        change.revokes = .allTokens(of: user, except: nil)
        let account = try await update(user, change)
        end(account, .revoked, .all)
    }

    /// Checks a new password.
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package func check(newPassword password: String) throws(HermesError) {
        guard (settings.minPasswordBytes...settings.maxPasswordBytes).contains(password.utf8.count) else {
            let range = "\(settings.minPasswordBytes) to \(settings.maxPasswordBytes)"
            throw HermesError(
                .ofValue(password.utf8.count, atMost: settings.maxPasswordBytes),
                "the password must have \(range) bytes"
            )
        }
        guard PasswordHasher.isAllowed(password) else {
            throw HermesError(.invalidArgument, "the password must not hold U+0000")
        }
    }

    // MARK: Tokens

    /// Issues a token for a device at the operator's request, without a password. Registers the device if it is new.
    ///
    /// - Throws: `.notFound`, `.accountDisabled`, `.deviceLimitReached`, `.storageUnavailable`.
    package func issueToken(for device: DeviceDescription, of user: UserID) async throws(HermesError) -> String {
        guard let stored = try await find(.id(user), for: .server) else {
            throw HermesError(.notFound, "there is no such account")
        }
        try check(isEnabled: stored.account)
        let token = AccessToken()
        let opening = DeviceOpening(
            user: user,
            device: device.clamped,
            token: token.hash,
            maxDevices: settings.maxDevices
        )
        _ = try await store.open(opening, now: time.now())
        return token.text
    }

    /// Revokes all tokens of an account at the operator's request, and ends its connections.
    package func revokeTokens(of user: UserID) async throws(HermesError) {
        try await revoke(.allTokens(of: user, except: nil))
        end(user, .revoked, .all)
    }

    /// Revokes an account's other tokens at the request of its owner, and ends its other connections.
    ///
    /// - Parameters:
    ///   - principal: the account, and the connection that stays.
    ///   - token: the token of this login (``Login/tokenHash``), which stays valid; nil if all tokens are to be
    ///     revoked.
    /// - Throws: `.rateLimited`, `.storageUnavailable`.
    package func revokeOtherTokens(of principal: Principal, keeping token: TokenHash?) async throws(HermesError) {
        try chargeChange(principal.user)
        try await revoke(.allTokens(of: principal.user, except: token))
        end(principal.user, .revoked, principal.login.map(EndedDevices.allBut) ?? .all)
    }

    /// Returns the tokens of an account, the newest first.
    package func tokens(of user: UserID) async throws(HermesError) -> [DeviceToken] {
        try await reads.turn(of: .account(user)) { () async throws(HermesError) in try await store.tokens(of: user) }
    }

    // MARK: Devices

    /// Returns the devices of an account, the oldest first.
    package func devices(of user: UserID) async throws(HermesError) -> [Device] {
        let devices = try await stored(of: user)
        return ledger.withLock { ledger in devices.map { ledger.renewed($0, of: user) } }
    }

    private func stored(of user: UserID) async throws(HermesError) -> [Device] {
        try await reads.turn(of: .account(user)) { () async throws(HermesError) in try await store.devices(of: user) }
    }

    /// Removes a device at the request of its owner.
    ///
    /// - Throws: `.rateLimited`, and the errors of ``removeDevice(_:of:)``.
    package func removeOwnDevice(_ device: DeviceID, of user: UserID) async throws(HermesError) {
        try chargeChange(user)
        try await removeDevice(device, of: user)
    }

    /// Charges an account for a change that it requests. Each such change is a separate transaction, and all messages
    /// wait while it runs.
    private func chargeChange(_ user: UserID) throws(HermesError) {
        try changes.withLock { changes throws(HermesError) in try changes.takeChange(of: user, now: time.uptime()) }
    }

    /// Charges an account for a change that it requests, and returns whether it may make the change.
    func mayChange(_ user: UserID) -> Bool {
        changes.withLock { $0.take(1, of: user, now: time.uptime()) == nil }
    }

    /// Removes a device, revokes its tokens and ends its connection.
    ///
    /// - Throws: `.notFound` if the account has no such device, `.storageUnavailable`.
    package func removeDevice(_ device: DeviceID, of user: UserID) async throws(HermesError) {
        let devices = try await stored(of: user)
        guard devices.contains(where: { $0.description.id == device }) else {
            throw HermesError(.notFound, "the account has no device \"\(device.rawValue)\"")
        }
        try await revoke(.device(device, of: user))
        end(user, .revoked, .only(device))
    }
}
