// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore

extension SQLiteStore {
    package func open(
        _ device: DeviceDescription,
        of user: UserID,
        token: TokenHash?,
        now: Timestamp
    ) async throws(HermesError) -> Device {
        try await write { (db, users) in
            users.append(user)
            let oldest = try Int64.fetchOne(
                db,
                sql: "SELECT oldest FROM inbox_head WHERE user = ?",
                arguments: [user.rawValue]
            )
            guard let oldest else { throw Refusals.noSuchAccount }
            try db.execute(
                sql: """
                    INSERT INTO device (user, device_id, name, platform, app_version, created_at, last_seen_at, cursor)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (user, device_id) DO UPDATE SET name = excluded.name, platform = excluded.platform,
                        app_version = excluded.app_version, last_seen_at = excluded.last_seen_at
                    """,
                arguments: [
                    user.rawValue, device.id.rawValue, device.name, device.platform, device.appVersion, now.rawValue,
                    now.rawValue, oldest - 1,
                ]
            )
            if let token {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO token (hash, user, device_id, created_at) VALUES (?, ?, ?, ?)",
                    arguments: [Self.blob(token), user.rawValue, device.id.rawValue, now.rawValue]
                )
                // By the time they were made; of one millisecond, the one that is new now counts as the newest.
                try db.execute(
                    sql: """
                        DELETE FROM token WHERE hash IN (SELECT hash FROM token WHERE user = ? AND device_id = ?
                            ORDER BY hash = ? DESC, created_at DESC LIMIT -1 OFFSET ?)
                        """,
                    arguments: [
                        user.rawValue, device.id.rawValue, Self.blob(token), StoreSettings.maxTokensPerDevice,
                    ]
                )
            }
            try Self.updateAcknowledged(db, of: user)
            let row = try Row.fetchOne(
                db,
                sql: "\(Self.selectDevice) WHERE user = ? AND device_id = ?",
                arguments: [user.rawValue, device.id.rawValue]
            )
            guard let row else { throw StoreFailure.damagedRow }
            return try Self.device(row)
        }
    }

    package func devices(of user: UserID) async throws(HermesError) -> [Device] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: "\(Self.selectDevice) WHERE user = ? ORDER BY id",
                arguments: [user.rawValue]
            ).map { try Self.device($0) }
        }
    }

    package func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError) {
        try await write { (db, users) in
            switch scope {
            case .token(let token):
                try db.execute(
                    sql: """
                        DELETE FROM push_token WHERE (user, device_id) IN (SELECT user, device_id FROM token WHERE hash = ?)
                        """,
                    arguments: [Self.blob(token)]
                )
                try db.execute(sql: "DELETE FROM token WHERE hash = ?", arguments: [Self.blob(token)])
            case .allTokens(let user, let kept):
                try db.execute(
                    sql: """
                        DELETE FROM push_token WHERE user = ?1
                            AND device_id IS NOT (SELECT device_id FROM token WHERE hash = ?2 AND user = ?1)
                        """,
                    arguments: [user.rawValue, kept.map { Self.blob($0) }]
                )
                try db.execute(
                    sql: "DELETE FROM token WHERE user = ? AND hash IS NOT ?",
                    arguments: [user.rawValue, kept.map { Self.blob($0) }]
                )
            case .device(let device, let user):
                users.append(user)
                for table in ["token", "push_token", "device"] {
                    try db.execute(
                        sql: "DELETE FROM \(table) WHERE user = ? AND device_id = ?",
                        arguments: [user.rawValue, device.rawValue]
                    )
                }
                try Self.updateAcknowledged(db, of: user)
            }
        }
    }

    static func blob(_ token: TokenHash) -> Data { Data(token.bytes) }

    private static func updateAcknowledged(_ db: Database, of user: UserID) throws {
        try db.execute(
            sql: """
                UPDATE inbox_head SET acknowledged = coalesce((SELECT min(cursor) FROM device WHERE device.user = ?), 0)
                WHERE user = ?
                """,
            arguments: [user.rawValue, user.rawValue]
        )
    }

    private static let selectDevice =
        "SELECT device_id, name, platform, app_version, created_at, last_seen_at, cursor FROM device"

    private static func device(_ row: Row) throws -> Device {
        guard let id = DeviceID(row["device_id"] as String) else { throw StoreFailure.damagedRow }
        return Device(
            description: DeviceDescription(
                id: id,
                name: row["name"],
                platform: row["platform"],
                appVersion: row["app_version"]
            ),
            createdAt: Timestamp(rawValue: row["created_at"]),
            lastSeenAt: Timestamp(rawValue: row["last_seen_at"]),
            cursor: UInt64(bitPattern: row["cursor"] as Int64)
        )
    }
}
