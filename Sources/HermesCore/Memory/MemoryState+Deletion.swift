// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The deletion of accounts.
extension MemoryState {
    /// - Returns: the deliveries to the members of groups and to contacts.
    mutating func deleteAccount(_ user: UserID, now: Timestamp) throws(HermesError) -> [InboxDelivery] {
        guard let record = records[user] else { throw StoreRefusals.noSuchAccount }
        let name = record.stored.account.nickName
        var deliveries = try abandonGroups(of: user, now: now)
        deliveries += try endContacts(of: user, name, now: now)
        tokens = tokens.filter { $0.value.owner.user != user }
        pushRows[user] = nil
        readMarks[user] = nil
        webhooks.marks[user] = nil
        for id in durableKeys.filter({ $0.key.owner == .account(user) }).values { remove(id) }
        names[name.key] = nil
        keptNames[name.key] = user
        records[user] = nil
        for entry in record.inbox.entries {
            uncount(entry, of: user)
            if case .message(let id) = entry.item { release(id, now: now) }
        }
        return deliveries
    }

    private mutating func abandonGroups(of user: UserID, now: Timestamp) throws(HermesError) -> [InboxDelivery] {
        var deliveries: [InboxDelivery] = []
        for group in groups.values.filter({ $0.member(user) != nil }).sorted(by: { $0.id.rawValue < $1.id.rawValue }) {
            let outcome = group.abandoned(by: user)
            apply(outcome, before: group)
            for notice in outcome.notices {
                deliveries += try appendEvent(.group(notice.event), to: notice.recipients, now: now)
            }
        }
        return deliveries
    }

    private mutating func endContacts(
        of user: UserID,
        _ name: NickName,
        now: Timestamp
    ) throws(HermesError) -> [InboxDelivery] {
        var deliveries: [InboxDelivery] = []
        let rows = contacts.removeValue(forKey: user) ?? [:]
        for (peer, row) in rows.sorted(by: { $0.key < $1.key }) {
            let other = contacts[peer]?.removeValue(forKey: user) ?? ContactRow()
            guard let kind = ContactPair(own: row, other: other).farewell else { continue }
            let event = ContactEvent(kind: kind, user: user, nickName: name.rawValue, message: "")
            deliveries += try appendEvent(.contact(event), to: [peer], now: now)
        }
        return deliveries
    }
}
