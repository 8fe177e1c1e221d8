// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: AccountStore {
    package func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account {
        try await write { (db, _) in
            if let invitation = account.invitation { try Self.use(invitation, at: now, in: db) }
            try Self.checkIsFree(account.nickName, in: db)
            try Self.refusingTakenNames {
                try db.execute(
                    sql: "INSERT INTO account (nick_name, nick_key, password, created_at) VALUES (?, ?, ?, ?)",
                    arguments: [
                        account.nickName.rawValue, account.nickName.key, account.password.phc, now.rawValue,
                    ]
                )
            }
            guard let id = UserID(db.lastInsertedRowID) else { throw StoreFailure.damagedRow }
            try db.execute(
                sql: "INSERT INTO inbox_head (user, head, oldest, acknowledged) VALUES (?, 0, 1, 0)",
                arguments: [id.rawValue]
            )
            return Account(id: id, nickName: account.nickName, createdAt: now)
        }
    }

    package func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount? {
        try await read { db in try DeviceReader(db: db).account(key) }
    }

    package func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] {
        try await read { [damage] db in
            try Self.accounts(
                db,
                "id > ? ORDER BY id LIMIT ?",
                [id?.rawValue ?? 0, StoreSettings.pageLimit(limit)],
                skipping: damage
            )
        }
    }

    package func accounts(
        after id: UserID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [Account], next: UserID?) {
        // GRDB binds a text only up to a U+0000, which no name contains.
        guard !key.utf8.contains(0) else { return ([], nil) }
        return try await read { [damage] db in
            let after = id?.rawValue ?? 0
            // This call looks only at accounts up to this id; the next call continues after it.
            let end = try Int64.fetchOne(
                db,
                sql: "SELECT id FROM account WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?",
                arguments: [after, StoreSettings.maxSearched - 1]
            )
            let found = try Self.accounts(
                db,
                "id > ? AND id <= ? AND instr(nick_key, ?) > 0 ORDER BY id LIMIT ?",
                [after, end ?? Int64.max, key, StoreSettings.pageLimit(limit)],
                skipping: damage
            )
            let next = found.count >= limit ? found.last?.id : end.flatMap { UserID($0) }
            return (found, next)
        }
    }

    package func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account {
        try await write { (db, users) in
            guard let stored = try Self.account(db, "id = ?", [id.rawValue]) else {
                throw StoreRefusals.noSuchAccount
            }
            if let expected = change.expectedPassword, expected != stored.password {
                throw StoreRefusals.passwordChanged
            }
            var account = stored.account
            account.nickName = change.nickName ?? account.nickName
            account.avatarURL = change.avatarURL ?? account.avatarURL
            account.isDisabled = change.isDisabled ?? account.isDisabled
            let password = change.password ?? stored.password
            let isRenamed = account.nickName.key != stored.account.nickName.key
            if isRenamed { try Self.checkIsFree(account.nickName, in: db) }
            try Self.refusingTakenNames {
                try db.execute(
                    sql: """
                        UPDATE account SET nick_name = ?, nick_key = ?, avatar_url = ?, is_disabled = ?, password = ?
                        WHERE id = ?
                        """,
                    arguments: [
                        account.nickName.rawValue, account.nickName.key, account.avatarURL, account.isDisabled,
                        password.phc, id.rawValue,
                    ]
                )
            }
            if let scope = change.revokes { try Self.revoke(scope, in: db, changing: &users) }
            if isRenamed {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO kept_name (key, user) VALUES (?, ?)",
                    arguments: [stored.account.nickName.key, id.rawValue]
                )
                // This marks the end of each queue: publications up to this end were queued while the account had its
                // old name.
                try db.execute(
                    sql: """
                        UPDATE session SET renamed_at =
                        coalesce((SELECT head FROM session_head WHERE session = session.id), 0) WHERE owner = ?
                        """,
                    arguments: [SessionOwner.account(id).stored]
                )
            }
            return account
        }
    }

    package func keptNames() async throws(HermesError) -> [KeptName] {
        try await read { [damage] db in
            try Row.fetchAll(db, sql: "SELECT key, user FROM kept_name").compactMap { row in
                guard let user = UserID(row["user"] as Int64) else {
                    // The name stays reserved, so nobody can take it.
                    damage.found("a kept name of user \(row["user"] as Int64)")
                    return nil
                }
                return KeptName(key: row["key"], user: user)
            }
        }
    }

    package func keeps(_ name: KeptName) async throws(HermesError) -> Bool {
        try await read { db in
            let sql = "SELECT EXISTS (SELECT 1 FROM kept_name WHERE key = ? AND user = ?)"
            return try Bool.fetchOne(db, sql: sql, arguments: [name.key, name.user.rawValue]) ?? false
        }
    }

    package func free(_ name: KeptName) async throws(HermesError) {
        try await write { (db, _) in
            try db.execute(
                sql: "DELETE FROM kept_name WHERE key = ? AND user = ?",
                arguments: [name.key, name.user.rawValue]
            )
        }
    }

    /// - Throws: `.nameTaken` if an account had the name before, and the name is not free yet.
    private static func checkIsFree(_ name: NickName, in db: Database) throws {
        let isKept = try Bool.fetchOne(
            db,
            sql: "SELECT EXISTS (SELECT 1 FROM kept_name WHERE key = ?)",
            arguments: [name.key]
        )
        if isKept ?? false { throw StoreRefusals.nameTaken }
    }

    package func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner? {
        try await read { db in try DeviceReader(db: db).owner(of: token) }
    }

    private static func account(
        _ db: Database,
        _ condition: String,
        _ arguments: StatementArguments
    ) throws -> StoredAccount? {
        try Row.fetchOne(db, sql: "\(AccountRow.select) AND \(condition)", arguments: arguments).map { try account($0) }
    }

    /// Reads a page of accounts, without damaged rows. Damaged ids are above all others, so a page of damaged rows
    /// alone comes after the last account.
    private static func accounts(
        _ db: Database,
        _ condition: String,
        _ arguments: StatementArguments,
        skipping damage: Damage
    ) throws -> [Account] {
        try Row.fetchAll(db, sql: "\(AccountRow.select) AND \(condition)", arguments: arguments).compactMap { row in
            try damage.skipping("account \(row["id"] as Int64)") { try account(row).account }
        }
    }

    private static func account(_ row: Row) throws -> StoredAccount {
        guard let id = UserID(row["id"] as Int64) else { throw StoreFailure.damagedRow }
        let account = Account(
            id: id,
            nickName: NickName(stored: row["nick_name"], key: row["nick_key"]),
            avatarURL: row["avatar_url"],
            isDisabled: row["is_disabled"],
            createdAt: Timestamp(rawValue: row["created_at"])
        )
        return StoredAccount(account: account, password: PasswordHash(phc: row["password"]))
    }

    private static func refusingTakenNames(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            throw StoreRefusals.nameTaken
        }
    }
}
