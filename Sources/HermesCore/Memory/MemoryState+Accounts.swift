// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryState {
    mutating func create(_ new: NewAccount, now: Timestamp) throws(HermesError) -> Account {
        try checkRoom(for: 0)
        guard names[new.nickName.key] == nil else { throw Self.nameTaken }
        guard lastUser < .max, let id = UserID(rawValue: lastUser + 1) else {
            throw HermesError(.storageUnavailable, "All account numbers are used up.")
        }
        lastUser += 1
        let account = Account(id: id, nickName: new.nickName, createdAt: now)
        records[id] = Record(stored: StoredAccount(account: account, password: new.password))
        names[new.nickName.key] = id
        return account
    }

    func find(_ key: AccountKey) -> StoredAccount? {
        switch key {
        case .id(let id): records[id]?.stored
        case .nickName(let name): names[name.key].flatMap { records[$0]?.stored }
        }
    }

    func accounts(after id: UserID?, limit: Int) -> [Account] {
        let ids = records.keys.filter { user in id.map { user > $0 } ?? true }.sorted()
        return ids.prefix(min(max(limit, 0), StoreSettings.maxPageEntries)).compactMap { records[$0]?.stored.account }
    }

    mutating func update(_ id: UserID, _ change: AccountChange) throws(HermesError) -> Account {
        try checkRoom(for: 0)
        guard let stored = records[id]?.stored else { throw Self.noSuchAccount }
        var account = stored.account
        if let name = change.nickName {
            guard names[name.key].map({ $0 == id }) ?? true else { throw Self.nameTaken }
            names[account.nickName.key] = nil
            names[name.key] = id
            account.nickName = name
        }
        account.avatarURL = change.avatarURL ?? account.avatarURL
        account.isDisabled = change.isDisabled ?? account.isDisabled
        records[id]?.stored = StoredAccount(account: account, password: change.password ?? stored.password)
        return account
    }

    mutating func open(
        _ description: DeviceDescription,
        of user: UserID,
        token: TokenHash?,
        now: Timestamp
    ) throws(HermesError) -> Device {
        try checkRoom(for: 0)
        guard var record = records[user] else { throw Self.noSuchAccount }
        let index: Int
        if let known = record.devices.firstIndex(where: { $0.description.id == description.id }) {
            index = known
            record.devices[index].description = description
            record.devices[index].lastSeenAt = now
        } else {
            index = record.devices.count
            let cursor = record.inbox.oldest - 1
            record.devices.append(
                Device(description: description, createdAt: now, lastSeenAt: now, cursor: cursor)
            )
        }
        if let token { add(token, of: TokenOwner(user: user, device: description.id)) }
        records[user] = record
        return record.devices[index]
    }

    private mutating func add(_ token: TokenHash, of owner: TokenOwner) {
        lastToken += 1
        tokens[token] = Token(owner: owner, number: lastToken)
        let newest = tokens.filter { $0.value.owner == owner }.sorted { $0.value.number > $1.value.number }
        for (token, _) in newest.dropFirst(StoreSettings.maxTokensPerDevice) { tokens[token] = nil }
    }

    mutating func revoke(_ scope: RevocationScope) throws(HermesError) {
        try checkRoom(for: 0)
        switch scope {
        case .token(let token):
            if let owner = tokens[token]?.owner { forgetPushToken(owner.device, of: owner.user) }
            tokens[token] = nil
        case .allTokens(let user, let kept):
            let own = kept.flatMap { tokens[$0]?.owner }
            for device in records[user]?.devices.map(\.description.id) ?? [] where device != own?.device {
                forgetPushToken(device, of: user)
            }
            tokens = tokens.filter { $0.value.owner.user != user || $0.key == kept }
        case .device(let device, let user):
            tokens = tokens.filter { $0.value.owner != TokenOwner(user: user, device: device) }
            records[user]?.devices.removeAll { $0.description.id == device }
            forgetPushToken(device, of: user)
        }
    }

    private static let nameTaken = HermesError(.nameTaken, "This nick name is taken. Choose another.")
}
