// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryState {
    mutating func create(_ new: NewAccount, now: Timestamp) throws(HermesError) -> Account {
        try checkRoom(for: 0)
        guard names[new.nickName.key] == nil, keptNames[new.nickName.key] == nil else { throw StoreRefusals.nameTaken }
        guard lastUser < .max, let id = UserID(rawValue: lastUser + 1) else {
            throw HermesError(.storageUnavailable, "All account numbers are used up.")
        }
        if let invitation = new.invitation { try use(invitation, at: now) }
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
        return ids.prefix(StoreSettings.pageLimit(limit)).compactMap { records[$0]?.stored.account }
    }

    mutating func update(_ id: UserID, _ change: AccountChange) throws(HermesError) -> Account {
        try checkRoom(for: 0)
        guard let stored = records[id]?.stored else { throw StoreRefusals.noSuchAccount }
        if let expected = change.expectedPassword, expected != stored.password { throw StoreRefusals.passwordChanged }
        var account = stored.account
        if let name = change.nickName {
            guard names[name.key].map({ $0 == id }) ?? true else { throw StoreRefusals.nameTaken }
            if name.key != account.nickName.key {
                guard keptNames[name.key] == nil else { throw StoreRefusals.nameTaken }
                markRenamed(id)
                keptNames[account.nickName.key] = id
            }
            names[account.nickName.key] = nil
            names[name.key] = id
            account.nickName = name
        }
        account.avatarURL = change.avatarURL ?? account.avatarURL
        account.isDisabled = change.isDisabled ?? account.isDisabled
        records[id]?.stored = StoredAccount(account: account, password: change.password ?? stored.password)
        if let scope = change.revokes { try revoke(scope) }
        return account
    }

    mutating func open(_ opening: DeviceOpening, now: Timestamp) throws(HermesError) -> Device {
        let user = opening.user
        try checkRoom(for: 0)
        guard var record = records[user] else { throw StoreRefusals.noSuchAccount }
        let known = record.devices.firstIndex { $0.description.id == opening.device.id }
        try opening.check(
            known: known.map { record.devices[$0].proof },
            count: record.devices.count,
            password: record.stored.password,
            isTokenKnown: owns(opening.shown.token, user)
        )
        let beginsAnew = opening.beginsAnew(known.map { record.devices[$0].proof })
        let start = record.inbox.oldest - 1
        let index = known ?? record.devices.count
        if known == nil {
            record.devices.append(
                Device(
                    description: opening.device,
                    createdAt: now,
                    lastSeenAt: now,
                    cursor: start,
                    proof: opening.proof
                )
            )
        }
        record.devices[index].description = opening.device
        record.devices[index].lastSeenAt = now
        record.devices[index].proof = max(record.devices[index].proof, opening.proof)
        if beginsAnew { record.devices[index].cursor = start }
        if let token = opening.token { add(token, of: TokenOwner(user: user, device: opening.device.id), now) }
        records[user] = record
        if beginsAnew { releaseEntries(of: user) }
        return record.devices[index]
    }

    /// Whether a token belongs to an account.
    func owns(_ token: TokenHash?, _ user: UserID) -> Bool { token.flatMap { tokens[$0] }?.owner.user == user }

    func standing(_ key: LoginKey, device: DeviceID?, address: String?) -> LoginStanding? {
        var owner: TokenOwner?
        let account: AccountKey
        switch key {
        case .account(let key):
            account = key
        case .token(let token):
            guard let found = tokens[token]?.owner else { return nil }
            owner = found
            account = .id(found.user)
        }
        guard let stored = find(account), let record = records[stored.account.id] else { return nil }
        let id = device ?? owner?.device
        return LoginStanding(
            stored: stored,
            owner: owner,
            device: record.devices.first { $0.description.id == id },
            networkSeenAt: record.networks[NetworkMark(of: stored.account.id, at: address)],
            position: position(of: stored.account.id)
        )
    }

    mutating func note(_ traces: [LoginTrace]) throws(HermesError) {
        try checkRoom(for: 0)
        for trace in traces {
            switch trace {
            case .device(let device, let user, let time):
                guard let index = records[user]?.devices.firstIndex(where: { $0.description.id == device.id }) else {
                    continue
                }
                records[user]?.devices[index].description = device
                let before = records[user]?.devices[index].lastSeenAt ?? time
                records[user]?.devices[index].lastSeenAt = max(before, time)
            case .network(let network, let user, let time):
                guard var networks = records[user]?.networks else { continue }
                networks[network] = max(networks[network] ?? time, time)
                let oldest = time.advanced(by: .zero - StoreSettings.networkPeriod)
                let newest = networks.filter { $0.value >= oldest }
                    .sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
                    .prefix(StoreSettings.maxNetworksPerAccount)
                records[user]?.networks = Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) })
            }
        }
    }

    func tokens(of user: UserID) -> [DeviceToken] {
        tokens.values.filter { $0.owner.user == user }
            .sorted { ($0.issuedAt, $0.number) > ($1.issuedAt, $1.number) }
            .map { DeviceToken(device: $0.owner.device, issuedAt: $0.issuedAt) }
    }

    private mutating func add(_ token: TokenHash, of owner: TokenOwner, _ now: Timestamp) {
        lastToken += 1
        tokens[token] = Token(owner: owner, issuedAt: now, number: lastToken)
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
        case .pushToken(let device, let user):
            forgetPushToken(device, of: user)
        case .device(let device, let user):
            tokens = tokens.filter { $0.value.owner != TokenOwner(user: user, device: device) }
            records[user]?.devices.removeAll { $0.description.id == device }
            // Release entries by the rule for an inbox that is not crowded. The next acknowledgement checks whether the
            // inbox is crowded.
            let released = InboxCursors(records[user]?.devices ?? []).released(isCrowded: false)
            records[user]?.inbox.acknowledged = released
            forgetPushToken(device, of: user)
        }
    }
}
