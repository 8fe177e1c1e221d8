// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores accounts, their devices and tokens. Rare compared with messages, so one call is one change; each is durable
/// when it returns.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `AccountStoreConformance` of HermesTestKit.
package protocol AccountStore: InvitationStore {
    /// Creates an account; ids are handed out ascending from 1. Its invitation is used up in the same commit.
    /// - Throws: `.nameTaken`, `.invitationRequired`, `.storageUnavailable`.
    func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account

    /// Finds one account and its password hash; nil if there is none.
    func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount?

    /// Accounts with an id above `id` (nil: from the first), ascending.
    func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account]

    /// Changes what is not nil.
    /// - Throws: `.notFound`, `.nameTaken`, `.storageUnavailable`.
    func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account

    /// Does what ``WriteOperation/openDevice(_:)`` does, in a commit of its own.
    /// - Throws: `.notFound`, `.deviceLimitReached`, `.forbidden`, `.storageUnavailable`.
    func open(_ opening: DeviceOpening, now: Timestamp) async throws(HermesError) -> Device

    /// What there is to know for a login, in one look; nil if there is no such account, or the token is unknown or revoked.
    ///
    /// - Parameters:
    ///   - key: whose login it is.
    ///   - device: the device that logs in; nil: the one that the token was given to.
    ///   - address: where from, as ``NetworkAddress/key(of:)`` made it; nil: locally.
    func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding?

    /// Notes when devices were seen, and where accounts logged in from (the newest of each account,
    /// ``StoreSettings/maxNetworksPerAccount``). What is gone meanwhile is left out.
    func note(_ traces: [LoginTrace]) async throws(HermesError)

    /// The devices of an account, oldest first.
    func devices(of user: UserID) async throws(HermesError) -> [Device]

    /// Whose token this is; nil if unknown or revoked.
    func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner?

    /// Revokes tokens, and removes the device where that is asked. A device whose token is revoked is not pushed to any
    /// more (``PushTokenStore``), for whoever holds it has logged out or was locked out.
    func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError)
}

extension AccountStore {
    /// Opens a device that proved itself, without a bound on their number.
    package func open(
        _ device: DeviceDescription,
        of user: UserID,
        token: TokenHash?,
        now: Timestamp
    ) async throws(HermesError) -> Device {
        try await open(DeviceOpening(user: user, device: device, token: token), now: now)
    }
}

/// A device that is to be opened.
package struct DeviceOpening: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceDescription
    /// A token that is to be stored for it.
    package let token: TokenHash?
    package let proof: DeviceProof
    /// A new device is refused if the account has so many.
    package let maxDevices: Int

    package init(
        user: UserID,
        device: DeviceDescription,
        token: TokenHash? = nil,
        proof: DeviceProof = .account,
        maxDevices: Int = .max
    ) {
        self.user = user
        self.device = device
        self.token = token
        self.proof = proof
        self.maxDevices = maxDevices
    }

    /// Whether it may be: a new device needs room, a known one as strong a proof as it showed before.
    ///
    /// - Parameters:
    ///   - known: the device as it is stored; nil if it is new.
    ///   - count: how many the account has.
    package func check(known: DeviceProof?, count: Int) throws(HermesError) {
        guard let known else {
            guard count < maxDevices else {
                throw HermesError(
                    .deviceLimitReached,
                    "the account has \(count) devices, as many as it may have; remove one first, from another device or "
                        + "by the operator (hermes user devices NAME --remove DEVICE)"
                )
            }
            return
        }
        guard proof >= known else {
            throw HermesError(.forbidden, "this device id belongs to another device of the account; choose another")
        }
    }
}

/// Whose login it is.
package enum LoginKey: Sendable, Hashable {
    case account(AccountKey)
    case token(TokenHash)
}

/// What the store knows of a login.
package struct LoginStanding: Sendable {
    package let stored: StoredAccount
    /// Whom the token was given to; nil without one.
    package let owner: TokenOwner?
    /// Nil if the account has no such device.
    package let device: Device?
    /// When the account last logged in from there, about a day exact; nil: never.
    package let networkSeenAt: Timestamp?
    package let position: InboxPosition

    package init(
        stored: StoredAccount,
        owner: TokenOwner?,
        device: Device?,
        networkSeenAt: Timestamp?,
        position: InboxPosition
    ) {
        self.stored = stored
        self.owner = owner
        self.device = device
        self.networkSeenAt = networkSeenAt
        self.position = position
    }
}

/// What a login leaves behind.
package enum LoginTrace: Sendable, Hashable {
    /// The device as it describes itself now.
    case device(DeviceDescription, of: UserID, at: Timestamp)
    case network(NetworkMark, of: UserID, at: Timestamp)
}

/// How an account is looked up.
package enum AccountKey: Sendable, Hashable {
    case id(UserID)
    /// By ``NickName/key``, that is, without regard to case.
    case nickName(NickName)
}

/// An account that is to be created.
package struct NewAccount: Sendable {
    package let nickName: NickName
    package let password: PasswordHash
    /// The invitation that it is made with.
    package let invitation: TokenHash?

    package init(nickName: NickName, password: PasswordHash, invitation: TokenHash? = nil) {
        self.nickName = nickName
        self.password = password
        self.invitation = invitation
    }
}

/// An account with what is needed to check its password.
package struct StoredAccount: Sendable {
    package let account: Account
    package let password: PasswordHash

    package init(account: Account, password: PasswordHash) {
        self.account = account
        self.password = password
    }
}

/// A change of an account; nil leaves a field as it is.
package struct AccountChange: Sendable {
    /// The password is changed only if the stored one is this still.
    package var expectedPassword: PasswordHash?
    package var nickName: NickName?
    package var avatarURL: String?
    package var password: PasswordHash?
    package var isDisabled: Bool?

    package init(
        nickName: NickName? = nil,
        avatarURL: String? = nil,
        password: PasswordHash? = nil,
        isDisabled: Bool? = nil
    ) {
        self.nickName = nickName
        self.avatarURL = avatarURL
        self.password = password
        self.isDisabled = isDisabled
    }
}

/// The account and device that a token was given to.
package struct TokenOwner: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID

    package init(user: UserID, device: DeviceID) {
        self.user = user
        self.device = device
    }
}

/// Which tokens to revoke.
package enum RevocationScope: Sendable, Hashable {
    case token(TokenHash)
    case allTokens(of: UserID, except: TokenHash?)
    /// Also removes the device: its cursor no longer keeps entries.
    case device(DeviceID, of: UserID)
}
