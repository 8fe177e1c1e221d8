// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: PushTokenStore {
    /// The statements whose plans a test checks for full scans.
    enum PushTokenQuery {
        static let devicesOfUser = "SELECT user, device_id FROM push_token WHERE user = ?"
        /// The change that takes a token from its former device.
        static let takeAway = """
            DELETE FROM push_token WHERE identity = ? AND service = ? AND NOT (user = ? AND device_id = ?)
            """
    }

    package func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        shown: ShownProof,
        now: Timestamp
    ) async throws(HermesError) {
        let identity = token?.identity
        try await write { (db, _) in
            let isKnown = try Bool.fetchOne(
                db,
                sql: "SELECT EXISTS (SELECT 1 FROM device WHERE user = ? AND device_id = ?)",
                arguments: [user.rawValue, device.rawValue]
            )
            guard isKnown == true else { throw StoreRefusals.noSuchDevice }
            guard let token, let identity else {
                return try db.execute(
                    sql: "DELETE FROM push_token WHERE user = ? AND device_id = ?",
                    arguments: [user.rawValue, device.rawValue]
                )
            }
            let reader = DeviceReader(db: db)
            guard let stored = try reader.account(.id(user)) else { throw StoreRefusals.noSuchAccount }
            let isTokenKnown = try reader.owns(shown.token, user)
            if let refusal = shown.refusal(password: stored.password, isTokenKnown: isTokenKnown) { throw refusal }
            try db.execute(
                sql: PushTokenQuery.takeAway,
                arguments: [identity, token.service.rawValue, user.rawValue, device.rawValue]
            )
            try db.execute(
                sql: """
                    INSERT INTO push_token (user, device_id, service, token, identity, app_id, set_at, pushed_up_to)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce((SELECT head FROM inbox_head WHERE user = ?1
                        AND head BETWEEN 0 AND \(PreparedStatement.maxSequence)), 0))
                    ON CONFLICT (user, device_id) DO UPDATE SET set_at = excluded.set_at,
                        pushed_up_to = CASE WHEN service = excluded.service AND identity = excluded.identity
                            THEN pushed_up_to ELSE excluded.pushed_up_to END,
                        service = excluded.service, token = excluded.token, identity = excluded.identity,
                        app_id = excluded.app_id
                    """,
                arguments: [
                    user.rawValue, device.rawValue, token.service.rawValue, token.text, identity, token.appID,
                    now.rawValue,
                ]
            )
        }
    }

    package func pushTargets(of user: UserID) async throws(HermesError) -> [PushTarget] {
        try await read { [damage] db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT t.device_id, t.service, t.token, t.app_id, t.set_at, t.pushed_up_to, d.cursor
                    FROM push_token t JOIN device d ON d.user = t.user AND d.device_id = t.device_id
                        JOIN account a ON a.id = t.user AND a.is_disabled = 0
                    WHERE t.user = ? ORDER BY t.device_id
                    """,
                arguments: [user.rawValue]
            ).compactMap { row in
                guard let device = DeviceID(row["device_id"] as String),
                    let service = UInt8(exactly: row["service"] as Int64).flatMap(PushToken.Service.init(rawValue:))
                else {
                    damage.found("a push token of user \(user.rawValue)")
                    return nil
                }
                return PushTarget(
                    device: device,
                    token: PushToken(stored: service, text: row["token"], appID: row["app_id"]),
                    setAt: Timestamp(rawValue: row["set_at"]),
                    cursor: UInt64(clamping: row["cursor"] as Int64),
                    pushedUpTo: UInt64(clamping: row["pushed_up_to"] as Int64)
                )
            }
        }
    }

    package func settlePushes(_ settlements: [PushSettlement]) async throws(HermesError) {
        try await write { (db, _) in
            for settlement in settlements {
                switch settlement {
                case .pushed(let user, let device, let token, let seq):
                    try db.execute(
                        sql: """
                            UPDATE push_token SET pushed_up_to = max(pushed_up_to, ?)
                            WHERE user = ? AND device_id = ? AND service = ? AND token = ?
                            """,
                        arguments: [
                            Int64(clamping: seq), user.rawValue, device.rawValue, token.service.rawValue, token.text,
                        ]
                    )
                case .gone(let user, let device, let token, let since):
                    try db.execute(
                        sql: """
                            DELETE FROM push_token WHERE user = ? AND device_id = ? AND service = ? AND token = ?
                                AND set_at <= ?
                            """,
                        arguments: [
                            user.rawValue, device.rawValue, token.service.rawValue, token.text,
                            since?.rawValue ?? Int64.max,
                        ]
                    )
                }
            }
        }
    }

    package func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) async throws(HermesError) -> [TokenOwner] {
        try await read { [damage] db in
            let query = try PreparedStatement(
                db,
                "SELECT user, device_id FROM push_token WHERE (user, device_id) > (?, ?) ORDER BY user, device_id"
            )
            query.bind(Int64(owner?.user.rawValue ?? 0), at: 1)
            return try query.bind(owner?.device.rawValue ?? "", at: 2) {
                try damage.list(
                    query,
                    limit: min(limit, StoreSettings.maxPageEntries),
                    name: { "a push token of user \($0.integer(0))" },
                    read: Self.tokenOwner
                )
            }
        }
    }

    package func devicesWithPushTokens(of user: UserID) async throws(HermesError) -> Set<DeviceID> {
        try await read { [damage] db in
            let query = try PreparedStatement(db, PushTokenQuery.devicesOfUser)
            query.bind(user, at: 1)
            let owners = try damage.list(
                query,
                name: { _ in "a push token of user \(user.rawValue)" },
                read: Self.tokenOwner
            )
            return Set(owners.map(\.device))
        }
    }

    private static func tokenOwner(_ row: PreparedStatement) throws -> TokenOwner {
        guard let device = row.text(1).flatMap({ DeviceID($0) }) else { throw StoreFailure.damagedRow }
        return TokenOwner(user: try row.user(0), device: device)
    }

    package func usersToPush(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
        try await users(
            """
            SELECT DISTINCT t.user FROM push_token t JOIN inbox_head h ON h.user = t.user
                JOIN device d ON d.user = t.user AND d.device_id = t.device_id
                JOIN account a ON a.id = t.user AND a.is_disabled = 0
            WHERE t.user > ? AND t.user <= ? AND h.head > max(t.pushed_up_to, d.cursor) ORDER BY t.user LIMIT ?
            """,
            among: "push_token",
            after: user,
            limit: limit
        )
    }

    /// Returns a page of users. The page is empty only after the last user. Damaged ids are left out. They are above
    /// all valid ids, so no user follows a page that has only damaged ids.
    ///
    /// - Parameters:
    ///   - sql: selects users. Its parameters are the id that all ids of the page must exceed, the last id, and the
    ///     largest number of users.
    ///   - table: the table whose users are examined.
    func users(
        _ sql: String,
        among table: String,
        after user: UserID?,
        limit: Int
    ) async throws(HermesError) -> [UserID] {
        let limit = StoreSettings.pageLimit(limit)
        var last = Int64(user?.rawValue ?? 0)
        while true {
            let part = try await read { [damage, last] db in
                let part = try Self.users(db, sql, among: table, after: last, limit: limit)
                let users = part.ids.compactMap { id in
                    let user = UserID(id)
                    if user == nil { damage.found("inbox of user \(id)") }
                    return user
                }
                return (users: users, end: part.end)
            }
            guard part.users.isEmpty, let end = part.end else { return part.users }
            last = end
        }
    }

    /// The largest number of rows that one read examines to find users. Other reads can run between two such reads.
    static let rowsPerRead = 10_000

    /// Returns users among the next rows of a table.
    ///
    /// - Returns: the users' ids, and the last user in these rows; nil if the table has no further rows.
    static func users(
        _ db: Database,
        _ sql: String,
        among table: String,
        after last: Int64,
        limit: Int
    ) throws -> (ids: [Int64], end: Int64?) {
        let end = try Int64.fetchOne(
            db,
            sql: "SELECT max(user) FROM (SELECT user FROM \(table) WHERE user > ? ORDER BY user LIMIT \(rowsPerRead))",
            arguments: [last]
        )
        guard let end else { return ([], nil) }
        return (try Int64.fetchAll(db, sql: sql, arguments: [last, end, limit]), end)
    }
}
