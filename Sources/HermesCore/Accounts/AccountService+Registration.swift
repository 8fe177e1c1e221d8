// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The creation of accounts.
extension AccountService {
    /// Creates an account and opens its first device. Every protocol registers through this function.
    ///
    /// - Parameters:
    ///   - nickName: the name as typed.
    ///   - password: the password in the clear. ``AccountSettings`` limits its length.
    ///   - invitation: the invitation code. It is used only if the registration rule requires an invitation.
    ///   - device: the device that registers.
    ///   - address: the peer's address without port, for limits; nil for local callers.
    /// - Returns: the login, with a new token.
    /// - Throws: `.nameTaken`, `.invalidArgument`, `.registrationClosed`, `.invitationRequired`, `.rateLimited`,
    ///   `.loginDelayed`, `.overloaded`, `.storageUnavailable`.
    package func register(
        nickName: String,
        password: String,
        invitation: String = "",
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        let stamp = devices.stamp()
        let key = address.map(NetworkAddress.key)
        let name = try NickName(new: nickName)
        try check(newPassword: password)
        var hash: TokenHash?
        switch settings.registration {
        case .closed:
            throw HermesError(.registrationClosed, "registration is closed on this server")
        case .invitation:
            hash = try await check(invitation: invitation, address: key)
        case .open:
            let now = time.uptime()
            if let delay = registrations.withLock({ $0.begin(address: key, now: now) }) {
                throw HermesError(
                    .rateLimited,
                    "too many registrations, from your address or in total; try again later",
                    retryAfter: delay
                )
            }
        }
        let stored: StoredAccount
        do throws(HermesError) {
            stored = try await create(
                name,
                password: password,
                invitation: hash,
                address: key,
                .registration(address: key ?? "")
            )
        } catch {
            if settings.registration == .open { registrations.withLock { $0.takeBack(address: key) } }
            throw error
        }
        if settings.registration == .open { counted(.registered(address: key)) }
        note(network: key, of: stored.account.id)
        let position = try await self.position(of: stored.account.id)
        let standing = LoginStanding(
            stored: stored,
            owner: nil,
            device: nil,
            networkSeenAt: nil,
            position: position
        )
        let admission = Admission(tokenHash: nil, proof: .account, standing: standing, stamp: stamp)
        return try await open(device, by: admission, isNewToken: true, readAfter: nil)
    }

    /// Creates an account without a device, for the operator. The registration rule does not apply.
    ///
    /// - Throws: `.nameTaken`, `.invalidArgument`, `.storageUnavailable`.
    package func createAccount(nickName: String, password: String) async throws(HermesError) -> Account {
        let name = try NickName(new: nickName)
        try check(newPassword: password)
        return try await create(name, password: password, invitation: nil, address: nil, .change()).account
    }

    /// - Parameter address: the key from ``NetworkAddress/key(of:)``; nil for a local caller.
    private func create(
        _ name: NickName,
        password: String,
        invitation: TokenHash?,
        address: String?,
        _ turn: PasswordHasher.Turn
    ) async throws(HermesError) -> StoredAccount {
        let charge = try begin(LoginThrottle.Attempt(address: address), isRegistration: true)
        do throws(HermesError) {
            // The name is looked up before the expensive hash is computed. The store checks the name again when it
            // creates the account.
            let taken = try await logins.turn(of: Self.source(of: address)) { () async throws(HermesError) in
                try await store.find(.nickName(name))
            }
            if taken != nil {
                throw HermesError(.nameTaken, "this nick name is taken; choose another")
            }
            let hash = try await hasher.hash(password, turn)
            let new = NewAccount(nickName: name, password: hash, invitation: invitation)
            let account = try await store.create(new, now: time.now())
            throttle.withLock { $0.takeBack(charge) }
            return StoredAccount(account: account, password: hash)
        } catch {
            // A taken name counts as a failure, so that names cannot be probed at full speed.
            if error.code == .nameTaken {
                counted(.failed(charge))
            } else {
                throttle.withLock { $0.takeBack(charge) }
            }
            throw error
        }
    }

    private func check(invitation: String, address: String?) async throws(HermesError) -> TokenHash {
        guard !invitation.isEmpty else {
            throw HermesError(.invitationRequired, "this server requires an invitation to register; ask for a code")
        }
        if let hash = InvitationCode.hash(of: invitation) {
            let known = try await logins.turn(of: Self.source(of: address)) { () async throws(HermesError) in
                try await store.invitation(hash)
            }
            if let known, known.isValid(at: time.now()) { return hash }
        }
        try chargeFailure(LoginThrottle.Attempt(address: address), isRegistration: true)
        throw HermesError(.invitationRequired, "the invitation is unknown, used up or expired; ask for another")
    }
}
