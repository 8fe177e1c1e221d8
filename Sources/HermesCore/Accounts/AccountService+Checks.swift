// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Checks of credentials, and their limits.
extension AccountService {
    /// Checks a credential without opening a device, for clients that have no device yet.
    ///
    /// - Parameters:
    ///   - credential: the proof.
    ///   - device: the client's device id; a device of the account has its own limit on failures.
    ///   - address: the peer's address without port, for limits; nil for local callers.
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.accountDisabled`, `.loginDelayed`, `.overloaded`,
    ///   `.storageUnavailable`.
    package func admit(
        _ credential: Credential,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> Admission {
        let stamp = devices.stamp()
        let address = address.map(NetworkAddress.key)
        switch credential {
        case .password(let nickName, let password):
            let standing = try await check(nickName: nickName, password: password, device: device, address: address)
            return try admitted(standing, nil, .account, stamp, from: address)
        case .token(let text):
            // The store finds the device to which the token was issued.
            let (standing, hash) = try await check(token: text, device: nil, address: address)
            return try admitted(standing, hash, .account, stamp, from: address)
        case .tokenOfAnyDevice(let text):
            let (standing, hash) = try await check(token: text, device: device, address: address)
            return try admitted(standing, hash, .account, stamp, from: address)
        case .passwordOrToken(let nickName, let secret):
            // The secret is looked up as a token first. An unknown token does not count as a failure here, because a
            // password may look like a token.
            if secret.utf8.count == AccessToken.bytes, let hash = TokenHash(ofToken: secret),
                let standing = try await self.standing(.token(hash), device: device, address: address)
            {
                guard let name = try? NickName(nickName), name == standing.stored.account.nickName else {
                    throw try refused(address: address)
                }
                return try admitted(standing, hash, .account, stamp, from: address)
            }
            let standing = try await check(nickName: nickName, password: secret, device: device, address: address)
            return try admitted(standing, nil, .account, stamp, from: address)
        case .claim(let user):
            return try admitted(try await check(user, device, address), nil, .claim, stamp, from: address)
        case .vouched(let user):
            return try admitted(try await check(user, device, address), nil, .voucher, stamp, from: address)
        }
    }

    /// Runs an external check of a credential. Failures of the check count against the address, like failed logins.
    ///
    /// A check that succeeds is never delayed, because other clients may share the address. So use this function only
    /// for credentials that cannot be guessed.
    package func limitingFailures<Value: Sendable>(
        of address: String?,
        _ check: () async throws(HermesError) -> Value
    ) async throws(HermesError) -> Value {
        do throws(HermesError) {
            return try await check()
        } catch {
            guard error.code == .invalidToken || error.code == .wrongCredentials else { throw error }
            try chargeFailure(LoginThrottle.Attempt(address: address.map(NetworkAddress.key)))
            throw error
        }
    }

    private func admitted(
        _ standing: LoginStanding,
        _ tokenHash: TokenHash?,
        _ proof: DeviceProof,
        _ stamp: UInt64,
        from address: String?
    ) throws(HermesError) -> Admission {
        try check(isEnabled: standing.stored.account)
        if proof == .account {
            let isFresh = standing.networkSeenAt.map {
                time.now() < $0.advanced(by: LoginLedger.networkInterval)
            }
            if isFresh != true { note(network: address, of: standing.stored.account.id) }
        }
        return Admission(
            tokenHash: tokenHash,
            tokenOwner: tokenHash == nil ? nil : standing.owner?.device,
            proof: proof,
            standing: standing,
            stamp: stamp
        )
    }

    /// Records that the account has logged in from this address. ``writeTraces(isLast:)`` stores the record later.
    func note(network address: String?, of user: UserID) {
        let trace = LoginTrace.network(NetworkMark(of: user, at: address), of: user, at: time.now())
        ledger.withLock { $0.note(trace) }
    }

    private func check(
        _ user: UserID,
        _ device: DeviceID?,
        _ address: String?
    ) async throws(HermesError) -> LoginStanding {
        guard let standing = try await self.standing(.account(.id(user)), device: device, address: address) else {
            throw try refused(address: address)
        }
        return standing
    }

    private func check(
        token: String,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> (LoginStanding, TokenHash) {
        if let hash = TokenHash(ofToken: token),
            let standing = try await self.standing(.token(hash), device: device, address: address)
        {
            return (standing, hash)
        }
        // A correct token is never delayed: it cannot be guessed, and the address may be shared.
        try chargeFailure(LoginThrottle.Attempt(address: address))
        throw HermesError(.invalidToken, "the token is unknown or revoked; log in with the password")
    }

    private func check(
        nickName: String,
        password: String,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding {
        let name: NickName
        do throws(HermesError) { name = try NickName(nickName) } catch { throw try refused(address: address) }
        guard canBeRight(password) else { throw try refused(address: address) }
        let standing = try await self.standing(.account(.nickName(name)), device: device, address: address)
        var attempt = LoginThrottle.Attempt(account: name.key, address: address)
        if let standing {
            let user = standing.stored.account.id
            let network = NetworkMark(of: user, at: address)
            attempt.isAddressKnown =
                standing.networkSeenAt != nil || ledger.withLock { $0.hasNetwork(network, of: user) }
            if let device = standing.device, device.proof == .account { attempt.device = device.description.id }
        }
        let isKnown = attempt.isAddressKnown || attempt.device != nil
        let turn: PasswordHasher.Turn =
            isKnown ? .known(account: name.key, address: address) : .stranger(address: address ?? "")
        let verification = try await verify(password, against: standing?.stored.password, turn, attempt)
        guard let standing, verification.isRight else {
            throw HermesError(.wrongCredentials, "wrong name or password")
        }
        guard let renewed = verification.renewed else { return standing }
        var change = AccountChange(password: renewed)
        change.expectedPassword = standing.stored.password
        // If the new hash cannot be stored, the old hash stays until the next login.
        guard let account = try? await store.update(standing.stored.account.id, change) else { return standing }
        return standing.with(StoredAccount(account: account, password: renewed))
    }

    /// Whether a password can match a stored hash, so that it is worth hashing.
    func canBeRight(_ password: String) -> Bool {
        password.utf8.count <= settings.maxPasswordBytes && PasswordHasher.isAllowed(password)
    }

    /// Checks a password within the limits. The attempt is charged only right before its hash is computed, so attempts
    /// that wait for a thread use up no budget. The charge stays only if the password was wrong.
    func verify(
        _ password: String,
        against stored: PasswordHash?,
        _ turn: PasswordHasher.Turn,
        _ attempt: LoginThrottle.Attempt
    ) async throws(HermesError) -> PasswordHasher.Verification {
        // The limits are checked first, so that an attempt that would be refused does not wait.
        let first = try begin(attempt)
        throttle.withLock { $0.takeBack(first) }
        let charged = ChargeBox()
        let verification: PasswordHasher.Verification
        do throws(HermesError) {
            verification = try await hasher.verify(password, against: stored, turn) { [self] in
                do throws(HermesError) {
                    let charge = try begin(attempt)
                    charged.value = charge
                    return nil
                } catch {
                    return error
                }
            }
        } catch {
            takeBack(charged)
            throw error
        }
        if verification.isRight {
            takeBack(charged)
        } else if let charge = charged.value {
            counted(.failed(charge))
        }
        return verification
    }

    /// Holds the charge of an attempt. The charge is made on another thread.
    private final class ChargeBox: Sendable {
        private let charge = Mutex<LoginThrottle.Charge?>(nil)

        var value: LoginThrottle.Charge? {
            get { charge.withLock { $0 } }
            set { charge.withLock { $0 = newValue } }
        }
    }

    private func takeBack(_ box: ChargeBox) {
        guard let charge = box.value else { return }
        throttle.withLock { $0.takeBack(charge) }
    }

    private func refused(address: String?) throws(HermesError) -> HermesError {
        try chargeFailure(LoginThrottle.Attempt(address: address))
        return HermesError(.wrongCredentials, "wrong name or password")
    }

    /// Charges a failed attempt on all nodes.
    ///
    /// - Throws: `.loginDelayed`.
    func chargeFailure(_ attempt: LoginThrottle.Attempt, isRegistration: Bool = false) throws(HermesError) {
        counted(.failed(try begin(attempt, isRegistration: isRegistration)))
    }

    /// Counts an attempt that another node has counted.
    func add(_ attempt: CountedAttempt) {
        let now = time.uptime()
        switch attempt {
        case .failed(let charge): throttle.withLock { $0.add(charge, now: now) }
        case .registered(let address): registrations.withLock { $0.add(address: address, now: now) }
        }
    }

    /// Charges an attempt, unless it must wait.
    ///
    /// - Parameter isRegistration: whether the attempt is an attempt to create an account.
    /// - Throws: `.loginDelayed`.
    func begin(
        _ attempt: LoginThrottle.Attempt,
        isRegistration: Bool = false
    ) throws(HermesError) -> LoginThrottle.Charge {
        let now = time.uptime()
        switch throttle.withLock({ $0.begin(attempt, now: now) }) {
        case .go(let charge): return charge
        case .wait(let delay):
            throw HermesError(
                .loginDelayed,
                isRegistration
                    ? "too many attempts to register or to log in failed at your address; wait before the next"
                    : "too many failed logins; wait before the next",
                retryAfter: delay
            )
        }
    }

    /// Checks that somebody may act on behalf of an account.
    ///
    /// - Throws: `.accountDisabled`.
    package func check(isEnabled account: Account) throws(HermesError) {
        if account.isDisabled { throw HermesError(.accountDisabled, "this account is disabled") }
    }
}
