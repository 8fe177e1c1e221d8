// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryState {
    /// The push token of a device.
    struct PushRow {
        var token: PushToken
        /// The ``PushToken/identity`` of the token.
        var identity: String
        var setAt: Timestamp
        var pushedUpTo: UInt64

        /// Whether this is the token with the given service and identity.
        func isSame(_ service: PushToken.Service, _ identity: String) -> Bool {
            token.service == service && self.identity == identity
        }
    }

    /// The queue of webhooks.
    struct WebhookQueue {
        struct Item {
            let number: Int64
            let event: WebhookEvent
            var attempts: Int
            var due: Timestamp
        }

        /// The waiting events, ascending by number.
        var items: [Item] = []
        var lastNumber: Int64 = 0
        var marks: [UserID: UInt64] = [:]
    }

    // MARK: Push tokens

    mutating func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        shown: ShownProof,
        now: Timestamp
    ) throws(HermesError) {
        try checkRoom(for: 0)
        guard let record = records[user], record.devices.contains(where: { $0.description.id == device }) else {
            throw StoreRefusals.noSuchDevice
        }
        guard let token else {
            pushRows[user]?[device] = nil
            return
        }
        let isTokenKnown = owns(shown.token, user)
        if let refusal = shown.refusal(password: record.stored.password, isTokenKnown: isTokenKnown) { throw refusal }
        let identity = token.identity
        let last = pushRows[user]?[device]
        for owner in pushRows.keys {
            pushRows[owner] = pushRows[owner]?.filter { !$0.value.isSame(token.service, identity) }
        }
        let isSame = last?.isSame(token.service, identity) ?? false
        pushRows[user, default: [:]][device] = PushRow(
            token: token,
            identity: identity,
            setAt: now,
            pushedUpTo: isSame ? last?.pushedUpTo ?? 0 : record.inbox.head
        )
    }

    func pushTargets(of user: UserID) -> [PushTarget] {
        guard let record = records[user], !record.stored.account.isDisabled, let rows = pushRows[user] else {
            return []
        }
        let targets = record.devices.compactMap { device in
            rows[device.description.id].map { row in
                PushTarget(
                    device: device.description.id,
                    token: row.token,
                    setAt: row.setAt,
                    cursor: device.cursor,
                    pushedUpTo: row.pushedUpTo
                )
            }
        }
        return targets.sorted { $0.device.rawValue < $1.device.rawValue }
    }

    mutating func settlePushes(_ settlements: [PushSettlement]) throws(HermesError) {
        try checkRoom(for: 0)
        for settlement in settlements {
            switch settlement {
            case .pushed(let user, let device, let token, let seq):
                guard let row = pushRows[user]?[device], row.token.service == token.service,
                    row.token.text == token.text
                else { continue }
                pushRows[user]?[device]?.pushedUpTo = max(row.pushedUpTo, seq)
            case .gone(let user, let device, let token, let since):
                guard let row = pushRows[user]?[device], row.token.service == token.service,
                    row.token.text == token.text, since.map({ row.setAt <= $0 }) ?? true
                else { continue }
                pushRows[user]?[device] = nil
            }
        }
    }

    func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) -> [TokenOwner] {
        func isBefore(_ left: TokenOwner, _ right: TokenOwner) -> Bool {
            (left.user.rawValue, left.device.rawValue) < (right.user.rawValue, right.device.rawValue)
        }
        let owners = pushRows.flatMap { user, rows in rows.keys.map { TokenOwner(user: user, device: $0) } }
        let later = owners.filter { candidate in owner.map { isBefore($0, candidate) } ?? true }.sorted(by: isBefore)
        return Array(later.prefix(StoreSettings.pageLimit(limit)))
    }

    func devicesWithPushTokens(of user: UserID) -> Set<DeviceID> { Set((pushRows[user] ?? [:]).keys) }

    func usersToPush(after user: UserID?, limit: Int) -> [UserID] {
        let users = pushRows.keys.filter { user in
            pushTargets(of: user).contains { (records[user]?.inbox.head ?? 0) > max($0.cursor, $0.pushedUpTo) }
        }
        return page(users, after: user, limit: limit)
    }

    /// Forgets a device's push token. Called when the device's login or the push token itself is revoked.
    mutating func forgetPushToken(_ device: DeviceID, of user: UserID) { pushRows[user]?[device] = nil }

    // MARK: Webhooks

    mutating func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) throws(HermesError) -> Int {
        try checkRoom(for: 0)
        for event in events {
            webhooks.lastNumber += 1
            webhooks.items.append(
                .init(number: webhooks.lastNumber, event: event, attempts: 0, due: event.createdAt)
            )
        }
        // Some of the accounts may have been deleted meanwhile.
        let known = marks.filter { records[$0.key] != nil }
        webhooks.marks.merge(known, uniquingKeysWith: max)
        let before = webhooks.items.count
        for user in Set(events.compactMap(\.user)) {
            let line = webhooks.items.filter { $0.event.user == user && $0.attempts < WebhookEvent.attemptsInOrder }
            let over = line.dropLast(WebhookEvent.maxWaiting(perUserOf: limit)).map(\.number)
            webhooks.items.removeAll { over.contains($0.number) }
        }
        webhooks.items.removeFirst(max(0, webhooks.items.count - max(0, limit)))
        let dropped = before - webhooks.items.count
        return dropped
    }

    func dueWebhooks(now: Timestamp, limit: Int) -> [StoredWebhook] {
        var held: Set<UserID> = []
        var due: [StoredWebhook] = []
        var counts: [UserID: Int] = [:]
        for item in webhooks.items where due.count < StoreSettings.pageLimit(limit) {
            if !WebhookEvent.isDue(at: item.due, now: now) {
                if let user = item.event.user, item.attempts < WebhookEvent.attemptsInOrder { held.insert(user) }
            } else if item.event.user.map({ !held.contains($0) }) ?? true {
                if let user = item.event.user {
                    counts[user, default: 0] += 1
                    if counts[user, default: 0] > WebhookEvent.maxDuePerUser { continue }
                }
                due.append(StoredWebhook(number: item.number, event: item.event, attempts: item.attempts))
            }
        }
        return due
    }

    mutating func settleWebhooks(_ settlements: [WebhookSettlement]) throws(HermesError) {
        try checkRoom(for: 0)
        for settlement in settlements {
            switch settlement {
            case .done(let number):
                webhooks.items.removeAll { $0.number == number }
            case .again(let number, let attempts, let due):
                guard let index = webhooks.items.firstIndex(where: { $0.number == number }) else { continue }
                webhooks.items[index].attempts = attempts
                webhooks.items[index].due = due
            }
        }
    }

    func usersWithUndelivered(after user: UserID?, limit: Int) -> [UserID] {
        let users = records.filter { user, record in
            record.inbox.head > max(InboxCursors(record.devices).delivered, webhooks.marks[user] ?? 0)
        }
        return page(users.keys, after: user, limit: limit)
    }

    private func page(_ users: some Sequence<UserID>, after user: UserID?, limit: Int) -> [UserID] {
        let later = users.filter { candidate in user.map { candidate > $0 } ?? true }.sorted()
        return Array(later.prefix(StoreSettings.pageLimit(limit)))
    }
}
