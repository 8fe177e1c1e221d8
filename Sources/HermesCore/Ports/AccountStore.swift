// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores accounts, their devices and tokens. Rare compared with messages, so one call is one change; each is durable
/// when it returns.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `AccountStoreConformance` of HermesTestKit.
package protocol AccountStore: Sendable {
    /// Creates an account; ids are handed out ascending from 1.
    /// - Throws: `.nameTaken`, `.storageUnavailable`.
    func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account

    /// Finds one account and its password hash; nil if there is none.
    func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount?

    /// Accounts with an id above `id` (nil: from the first), ascending.
    func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account]

    /// Changes what is not nil.
    /// - Throws: `.notFound`, `.nameTaken`, `.storageUnavailable`.
    func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account

    /// Registers the device if it is new (its cursor starts before the account's oldest stored entry), else renews its
    /// description and `lastSeenAt`; and stores a token for it if one is given. Of a device's tokens only the newest are
    /// kept (``StoreSettings/maxTokensPerDevice``).
    func open(
        _ device: DeviceDescription,
        of user: UserID,
        token: TokenHash?,
        now: Timestamp
    ) async throws(HermesError) -> Device

    /// The devices of an account, oldest first.
    func devices(of user: UserID) async throws(HermesError) -> [Device]

    /// Whose token this is; nil if unknown or revoked.
    func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner?

    /// Revokes tokens, and removes the device where that is asked. A device whose token is revoked is not pushed to any
    /// more (``PushTokenStore``), for whoever holds it has logged out or was locked out.
    func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError)
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

    package init(nickName: NickName, password: PasswordHash) {
        self.nickName = nickName
        self.password = password
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
