// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores accounts, their devices and tokens. Changes are rare, so each call makes one change, which is durable when
/// the call returns.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `AccountStoreConformance` of HermesTestKit.
package protocol AccountStore: InvitationStore {
    /// Creates an account. Ids ascend from 1. The same commit counts a use of the account's invitation.
    /// - Throws: `.nameTaken`, `.invitationRequired`, `.storageUnavailable`.
    func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account

    /// Returns an account and its password hash; nil if there is no such account.
    func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount?

    /// Returns accounts with an id above `id`, or with any id if `id` is nil, in ascending order of their ids.
    func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account]

    /// Returns accounts whose names contain a given text, in ascending order of their ids. If `id` is not nil, only
    /// accounts with a higher id are returned. Looks at no more than ``StoreSettings/maxSearched`` accounts.
    ///
    /// - Parameter key: the text in the form of ``NickName/key``.
    /// - Returns: the accounts that were found, and the last account that was looked at. The second value is nil if no
    ///   accounts follow.
    func accounts(
        after id: UserID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [Account], next: UserID?)

    /// Changes the fields that are not nil, and revokes tokens if the change says so, in one commit.
    /// - Throws: `.notFound`, `.nameTaken`, `.wrongCredentials` if the change expects another password,
    ///   `.storageUnavailable`.
    func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account

    /// Returns the names that accounts had before ``update(_:_:)`` gave them other names, and the names of deleted
    /// accounts. Nobody can take such a name (`.nameTaken`) until ``free(_:)`` frees it.
    func keptNames() async throws(HermesError) -> [KeptName]

    /// Whether the name is still kept.
    func keeps(_ name: KeptName) async throws(HermesError) -> Bool

    /// Frees a kept name.
    func free(_ name: KeptName) async throws(HermesError)

    /// Performs ``WriteOperation/openDevice(_:)`` in a commit of its own.
    /// - Throws: `.notFound`, `.deviceLimitReached`, `.forbidden`, `.wrongCredentials`, `.storageUnavailable`.
    func open(_ opening: DeviceOpening, now: Timestamp) async throws(HermesError) -> Device

    /// Reads everything that a login needs, with one call. Returns nil if there is no such account, or if the token is
    /// unknown or revoked.
    ///
    /// - Parameters:
    ///   - key: the account or token.
    ///   - device: the device that logs in; nil if the token's own device logs in.
    ///   - address: the key from ``NetworkAddress/key(of:)``; nil for a local caller.
    func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding?

    /// Records when devices were seen, and from which networks accounts logged in. Keeps only the newest
    /// ``StoreSettings/maxNetworksPerAccount`` networks of each account. Ignores devices and accounts that have been
    /// removed meanwhile.
    func note(_ traces: [LoginTrace]) async throws(HermesError)

    /// Returns the devices of an account, the oldest first.
    func devices(of user: UserID) async throws(HermesError) -> [Device]

    /// Searches all accounts for devices whose ids or names contain a given text. Returns them in any order. The case
    /// of ASCII letters does not matter. Looks at no more than the newest ``StoreSettings/maxSearched`` devices.
    ///
    /// - Parameter text: the text to search for, with ASCII letters in lower case; it is not empty.
    func devices(containing text: String, limit: Int) async throws(HermesError) -> [OwnedDevice]

    /// Returns the tokens of an account, the newest first; at most ``StoreSettings/maxTokensPerDevice`` for each
    /// device.
    func tokens(of user: UserID) async throws(HermesError) -> [DeviceToken]

    /// Returns the owner of a token; nil if the token is unknown or revoked.
    func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner?

    /// Revokes tokens, and removes the device if the scope says so. A device whose token is revoked gets no more pushes
    /// (``PushTokenStore``), because its user has logged out or was locked out.
    func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError)
}

/// A name that an account had. The name is kept as long as the next owner of the name could still read something below
/// `user/NAME/`.
package struct KeptName: Hashable, Sendable {
    /// The name in the form of ``NickName/key``.
    package let key: String
    /// The account that had the name.
    package let user: UserID

    package init(key: String, user: UserID) {
        self.key = key
        self.user = user
    }
}

extension AccountStore {
    /// The default implementation, for stores in memory.
    package func accounts(
        after id: UserID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [Account], next: UserID?) {
        var (found, last, searched): ([Account], UserID?, Int) = ([], id, 0)
        while searched < StoreSettings.maxSearched {
            let page = try await accounts(after: last, limit: StoreSettings.maxPageEntries)
            guard !page.isEmpty else { return (found, nil) }
            for account in page {
                last = account.id
                if account.nickName.key.utf8.contains(key.utf8) { found.append(account) }
                if found.count >= limit { return (found, last) }
            }
            searched += page.count
        }
        return (found, last)
    }

    /// The default implementation, for stores in memory.
    package func devices(containing text: String, limit: Int) async throws(HermesError) -> [OwnedDevice] {
        var (found, last, searched): ([OwnedDevice], UserID?, Int) = ([], nil, 0)
        while searched < StoreSettings.maxSearched {
            let page = try await accounts(after: last, limit: StoreSettings.maxPageEntries)
            guard !page.isEmpty else { return found }
            for account in page {
                last = account.id
                for device in try await devices(of: account.id) {
                    searched += 1
                    let names = [device.description.id.rawValue, device.description.name]
                    guard names.contains(where: { Group.searchKey($0).utf8.contains(text.utf8) }) else { continue }
                    found.append(OwnedDevice(owner: account.id, description: device.description))
                    if found.count >= limit { return found }
                }
                searched += 1
            }
        }
        return found
    }
}

/// A device to be opened.
package struct DeviceOpening: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceDescription
    /// A token to be stored for the device; nil if there is none.
    package let token: TokenHash?
    /// The proof that the login showed. If it is no longer valid, the opening is refused.
    package let shown: ShownProof
    package let proof: DeviceProof
    /// The largest number of devices that the account may have. A new device beyond this limit is refused.
    package let maxDevices: Int

    package init(
        user: UserID,
        device: DeviceDescription,
        token: TokenHash? = nil,
        shown: ShownProof = .other,
        proof: DeviceProof = .account,
        maxDevices: Int = .max
    ) {
        self.user = user
        self.device = device
        self.token = token
        self.shown = shown
        self.proof = proof
        self.maxDevices = maxDevices
    }

    /// Whether the device begins at the oldest entry, because it is new or shows its first proof. Before the first
    /// proof, anybody could claim to be this device. So entries that were acknowledged before the first proof do not
    /// count as acknowledged.
    ///
    /// - Parameter known: the device's proof until now; nil if there is no such device.
    package func beginsAnew(_ known: DeviceProof?) -> Bool {
        known.map { $0 == .claim && proof > .claim } ?? true
    }

    /// Checks the opening. A new device needs room, and a known device needs a proof that is at least as strong as its
    /// stored proof. In both cases, the proof that the login showed must still be valid.
    ///
    /// - Parameters:
    ///   - known: the stored proof; nil if the device is new.
    ///   - count: the number of the account's devices.
    ///   - present: the stored password.
    ///   - isTokenKnown: whether the account has the token that was shown.
    package func check(
        known: DeviceProof?,
        count: Int,
        password present: PasswordHash,
        isTokenKnown: Bool
    ) throws(HermesError) {
        if let refusal = shown.refusal(password: present, isTokenKnown: isTokenKnown) { throw refusal }
        guard let known else {
            // Devices without a proof leave room for devices that prove their identity.
            let limit = proof == .claim ? maxDevices - maxDevices / 4 : maxDevices
            guard count < limit else {
                throw HermesError(
                    .deviceLimitReached,
                    "the account has \(count) devices, which is the limit; remove a device first, from another "
                        + "device, or ask the operator (hermes user devices NAME --remove DEVICE)"
                )
            }
            return
        }
        guard proof >= known else {
            throw HermesError(.forbidden, "this device id belongs to another device of the account; choose another")
        }
    }
}

/// The account or token of a login.
package enum LoginKey: Sendable, Hashable {
    case account(AccountKey)
    case token(TokenHash)
}

/// The stored state of an account that logs in: its token, device, network and inbox position.
package struct LoginStanding: Sendable {
    package let stored: StoredAccount
    /// The owner of the token; nil if the login shows no token.
    package let owner: TokenOwner?
    /// The device that the login names, or the token's device if the login names no device; nil if the account does not
    /// have this device.
    package let device: Device?
    /// The time of the account's last login from this network, accurate to about a day; nil if there was none.
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

    /// Returns the same standing with the account as it is now.
    func with(_ stored: StoredAccount) -> LoginStanding {
        LoginStanding(stored: stored, owner: owner, device: device, networkSeenAt: networkSeenAt, position: position)
    }
}

/// A trace of a login.
package enum LoginTrace: Sendable, Hashable {
    /// The device's present description.
    case device(DeviceDescription, of: UserID, at: Timestamp)
    case network(NetworkMark, of: UserID, at: Timestamp)
}

/// The key for looking up an account.
package enum AccountKey: Sendable, Hashable {
    case id(UserID)
    /// The name is compared by ``NickName/key``, so case is ignored.
    case nickName(NickName)

    /// - Parameter text: a decimal uid or a name. Digits are always a uid, so that nobody can take the place of a
    ///   deleted account by choosing its number as a name.
    /// - Throws: `.notFound` for digits that are not a uid; for other texts, the errors of ``NickName``.
    package init(uidOrName text: String) throws(HermesError) {
        let isDigits = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isDigits, !text.isEmpty else {
            self = .nickName(try NickName(text))
            return
        }
        guard let user = Int32(text).flatMap({ UserID(rawValue: $0) }) else { throw StoreRefusals.noSuchAccount }
        self = .id(user)
    }
}

/// An account to be created.
package struct NewAccount: Sendable {
    package let nickName: NickName
    package let password: PasswordHash
    /// The invitation that the account uses; nil if it uses none.
    package let invitation: TokenHash?

    package init(nickName: NickName, password: PasswordHash, invitation: TokenHash? = nil) {
        self.nickName = nickName
        self.password = password
        self.invitation = invitation
    }
}

/// An account with its password hash.
package struct StoredAccount: Sendable {
    package let account: Account
    package let password: PasswordHash

    package init(account: Account, password: PasswordHash) {
        self.account = account
        self.password = password
    }
}

/// A change of an account. A field that is nil is not changed.
package struct AccountChange: Sendable {
    /// The password that must still be stored; nil if any password may be stored. If another password is stored, the
    /// change is refused.
    package var expectedPassword: PasswordHash?
    /// Tokens to be revoked with the change.
    package var revokes: RevocationScope?
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

/// The account and device of a token.
package struct TokenOwner: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID

    package init(user: UserID, device: DeviceID) {
        self.user = user
        self.device = device
    }
}

/// The tokens to revoke.
package enum RevocationScope: Sendable, Hashable {
    case token(TokenHash)
    case allTokens(of: UserID, except: TokenHash?)
    /// The push token of a device.
    case pushToken(DeviceID, of: UserID)
    /// The tokens of a device. The device is also removed, so its cursor no longer keeps entries.
    case device(DeviceID, of: UserID)
}
