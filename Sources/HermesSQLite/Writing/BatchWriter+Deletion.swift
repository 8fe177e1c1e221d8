// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Deleting accounts.
extension BatchWriter {
    /// What an account alone has rows in, by "user". Its inbox may be long: purge deletes that.
    private static let tables = [
        "token", "push_token", "device", "known_network", "push_collapse", "webhook_mark", "read_mark", "inbox_head",
    ]

    mutating func deleteAccount(_ user: UserID) throws -> WriteOutcome {
        guard try loadInbox(of: user) else { return .refused(Refusals.noSuchAccount) }
        let select = try PreparedStatement(db, "SELECT nick_name, nick_key FROM account WHERE id = ?")
        select.bind(user, at: 1)
        guard let (name, key) = try select.first({ ($0.text(0) ?? "", $0.text(1) ?? "") }) else {
            throw StoreFailure.damagedRow
        }
        var deliveries = try abandonGroups(of: user)
        deliveries += try endContacts(of: user, name: name)
        try run("INSERT INTO inbox_gone (user) VALUES (?)", user)
        for table in Self.tables { try run("DELETE FROM \(table) WHERE user = ?", user) }
        try run("DELETE FROM account WHERE id = ?", user)
        try removeSessions(of: key)
        cache.forget(user)
        return .eventAppended(deliveries)
    }

    private func run(_ sql: String, _ user: UserID) throws {
        let statement = try PreparedStatement(db, sql)
        statement.bind(user, at: 1)
        try statement.run()
    }

    private mutating func abandonGroups(of user: UserID) throws -> [InboxDelivery] {
        let select = try PreparedStatement(db, "SELECT group_id FROM group_member WHERE user = ? ORDER BY group_id")
        var groups: [GroupID] = []
        select.bind(user, at: 1)
        try select.forEachRow { row in
            guard let id = Int32(exactly: row.integer(0)).flatMap(GroupID.init(rawValue:)) else {
                throw StoreFailure.damagedRow
            }
            groups.append(id)
            return true
        }
        var deliveries: [InboxDelivery] = []
        for id in groups {
            guard let group = try loadGroup(id) else { throw StoreFailure.damagedRow }
            let outcome = group.abandoned(by: user)
            try write(outcome, before: group)
            deliveries += try tell(outcome)
        }
        return deliveries
    }

    private mutating func endContacts(of user: UserID, name: String) throws -> [InboxDelivery] {
        let select = try PreparedStatement(db, "SELECT peer FROM contact WHERE owner = ? ORDER BY peer")
        var peers: [UserID] = []
        select.bind(user, at: 1)
        try select.forEachRow { row in
            peers.append(try row.user(0))
            return true
        }
        var deliveries: [InboxDelivery] = []
        for peer in peers {
            guard let kind = try SocialReader(db: db).pair(user, peer).farewell else { continue }
            let event = ContactEvent(kind: kind, user: user, nickName: name, message: "")
            guard case .eventAppended(let told) = try appendEvent(.contact(event), to: [peer]) else {
                throw StoreFailure.damagedRow
            }
            deliveries += told
        }
        // Who is told of no block still has the deleted account among the blocked in the cache; nobody has that number again.
        try run(
            "DELETE FROM contact WHERE (owner, peer) IN (SELECT peer, owner FROM contact WHERE owner = ?)",
            user
        )
        try run("DELETE FROM contact WHERE owner = ?", user)
        return deliveries
    }

    /// As ``SessionWriter`` removes one.
    private mutating func removeSessions(of owner: String) throws {
        let select = try PreparedStatement(db, "SELECT id FROM session WHERE owner = ?")
        var sessions: [Int64] = []
        try select.bind(owner, at: 1) {
            try select.forEachRow { row in
                sessions.append(row.integer(0))
                return true
            }
        }
        for id in sessions {
            let tables = ["session_head", "session_subscription", "session_received", "session_released"]
            for sql in tables.map({ "DELETE FROM \($0) WHERE session = ?" })
                + ["DELETE FROM session WHERE id = ?", "INSERT INTO session_gone (session) VALUES (?)"]
            {
                let statement = try PreparedStatement(db, sql)
                statement.bind(id, at: 1)
                try statement.run()
            }
            removedSessions.append(DurableSessionID(rawValue: id))
        }
    }
}
