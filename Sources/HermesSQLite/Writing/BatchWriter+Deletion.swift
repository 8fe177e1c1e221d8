// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Deletes accounts in bounded parts, one per commit.
///
/// The first part hides the account (`is_disabled` is ``AccountRow/leaving``), and deletes its credentials and the head
/// of its inbox. From then on, the account can no longer be found. Each part removes the account from groups, and
/// deletes its contacts, its sessions and other rows, as many as fit. The last part deletes the account's row. Until
/// then this row reserves the name; from then on `kept_name` does (``KeptName``). Each part searches for the
/// remaining rows, so no progress is stored.
extension BatchWriter {
    /// The number of rows after which a commit stops working on a deletion. Writing that many rows takes some
    /// milliseconds. A commit that is removing the account from a group still completes this removal.
    static let deletionRows = 500

    /// Tables with a few rows of an account, found by the column `user`. The purge deletes the account's inbox, which
    /// may be long.
    private static let tables = ["token", "push_token", "device", "known_network", "webhook_mark", "inbox_head"]

    mutating func deleteAccount(_ user: UserID) throws -> WriteOutcome {
        let select = try PreparedStatement(db, "SELECT nick_name, nick_key, is_disabled FROM account WHERE id = ?")
        select.bind(user, at: 1)
        let found = try select.first { (name: $0.text(0) ?? "", key: $0.text(1) ?? "", state: $0.integer(2)) }
        guard let found else { return .refused(StoreRefusals.noSuchAccount) }
        if found.state != AccountRow.leaving {
            try run("UPDATE account SET is_disabled = \(AccountRow.leaving) WHERE id = ?", user)
            try run("INSERT OR IGNORE INTO inbox_gone (user) VALUES (?)", user)
            for table in Self.tables { try run("DELETE FROM \(table) WHERE user = ?", user) }
            cache.forget(user)
        }
        var rows = Self.deletionRows
        var deliveries = try abandonGroups(of: user, rows: &rows)
        if rows > 0 { deliveries += try endContacts(of: user, name: found.name, rows: &rows) }
        for (table, key) in [("push_collapse", "name"), ("read_mark", "conversation")] where rows > 0 {
            try forget(table, by: key, of: user, rows: &rows)
        }
        if rows > 0 { try removeSessions(of: user, rows: &rows) }
        guard rows > 0 else { return .deleted(deliveries, isDone: false) }
        try run("INSERT OR REPLACE INTO kept_name (key, user) SELECT nick_key, id FROM account WHERE id = ?", user)
        try run("DELETE FROM account WHERE id = ?", user)
        cache.forget(user)
        return .deleted(deliveries, isDone: true)
    }

    private func run(_ sql: String, _ user: UserID) throws {
        let statement = try PreparedStatement(db, sql)
        statement.bind(user, at: 1)
        try statement.run()
    }

    private mutating func abandonGroups(of user: UserID, rows: inout Int) throws -> [InboxDelivery] {
        let select = try PreparedStatement(
            db,
            "SELECT group_id FROM group_member WHERE user = ? ORDER BY group_id LIMIT 1"
        )
        var deliveries: [InboxDelivery] = []
        while rows > 0 {
            select.bind(user, at: 1)
            guard let number = try select.first({ $0.integer(0) }) else { break }
            guard let id = Int32(exactly: number).flatMap(GroupID.init(rawValue:)), let group = try loadGroup(id) else {
                // The membership belongs to no existing group.
                let delete = try PreparedStatement(db, "DELETE FROM group_member WHERE group_id = ? AND user = ?")
                delete.bind(number, at: 1)
                delete.bind(user, at: 2)
                try delete.run()
                rows -= 1
                continue
            }
            let outcome = group.abandoned(by: user)
            try write(outcome, before: group)
            let told = try tell(outcome)
            deliveries += told
            rows = time.isSpent ? 0 : rows - 2 - told.count
        }
        return deliveries
    }

    private mutating func endContacts(of user: UserID, name: String, rows: inout Int) throws -> [InboxDelivery] {
        // A row with an impossible peer belongs to no existing account.
        try run("DELETE FROM contact WHERE owner = ? AND peer NOT BETWEEN 1 AND 0x7FFFFFFF", user)
        let select = try PreparedStatement(db, "SELECT peer FROM contact WHERE owner = ? ORDER BY peer LIMIT ?")
        var peers: [UserID] = []
        select.bind(user, at: 1)
        // Each contact has a row for each of the two accounts, and perhaps an event.
        let limit = max(1, rows / 3)
        select.bind(Int64(limit), at: 2)
        try select.forEachRow { row in
            peers.append(try row.user(0))
        }
        let delete = try PreparedStatement(
            db,
            "DELETE FROM contact WHERE (owner = ?1 AND peer = ?2) OR (owner = ?2 AND peer = ?1)"
        )
        var deliveries: [InboxDelivery] = []
        for peer in peers where rows > 0 {
            let farewell = try SocialReader(db: db).pair(user, peer).farewell
            delete.bind(user, at: 1)
            delete.bind(peer, at: 2)
            try delete.run()
            rows = time.isSpent ? 0 : rows - 3
            // The deletion of the peer's account may also have begun. A damaged peer must not prevent the deletion of
            // `user`.
            guard let kind = farewell, try loadSoundInbox(of: peer) else { continue }
            let event = ContactEvent(kind: kind, user: user, nickName: name, message: "")
            guard case .eventAppended(let told) = try appendEvent(.contact(event), to: [peer]) else {
                throw StoreFailure.damagedRow
            }
            deliveries += told
        }
        // If the query has reached its limit, there may be more contacts, so the commit stops here.
        if peers.count == limit { rows = 0 }
        return deliveries
    }

    /// Deletes an account's rows from a table that may have many of them.
    private func forget(_ table: String, by key: String, of user: UserID, rows: inout Int) throws {
        let delete = try PreparedStatement(
            db,
            """
            DELETE FROM \(table) WHERE user = ?1 AND \(key) IN \
            (SELECT \(key) FROM \(table) WHERE user = ?1 ORDER BY \(key) LIMIT ?2)
            """
        )
        delete.bind(user, at: 1)
        delete.bind(Int64(rows), at: 2)
        try delete.run()
        rows -= db.changesCount
    }

    /// Removes sessions as ``SessionWriter`` does.
    private mutating func removeSessions(of user: UserID, rows: inout Int) throws {
        let select = try PreparedStatement(
            db,
            """
            SELECT s.id, h.queued, h.bytes FROM session s LEFT JOIN session_head h ON h.session = s.id \
            WHERE s.owner = ? LIMIT ?
            """
        )
        var sessions: [Int64] = []
        let limit = max(1, rows / 3)
        select.bind(Int64(limit), at: 2)
        try select.bind(SessionOwner.account(user).stored, at: 1) {
            try select.forEachRow { row in
                sessions.append(row.integer(0))
                let holding = Holding(entries: row.amount(1), bytes: row.amount(2))
                effects.queues.add(-holding, of: .account(user))
            }
        }
        for id in sessions {
            try SessionWriter.removeRows(db, of: id)
            rows -= 3
            effects.removedSessions.append(DurableSessionID(rawValue: id))
        }
        if sessions.count == limit { rows = 0 }
    }
}
