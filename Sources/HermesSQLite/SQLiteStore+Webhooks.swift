// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore

extension SQLiteStore: WebhookStore {
    package func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) async throws(HermesError) -> Int {
        try await write { (db, _) in
            for event in events {
                try db.execute(
                    sql: "INSERT INTO webhook (id, user, created_at, attempts, due, body) VALUES (?, ?, ?, 0, ?, ?)",
                    arguments: [
                        event.id, event.user?.rawValue ?? 0, event.createdAt.rawValue, event.createdAt.rawValue,
                        Data(event.body),
                    ]
                )
            }
            for (user, seq) in marks {
                try db.execute(
                    sql: """
                        INSERT INTO webhook_mark (user, reported_up_to) VALUES (?, ?)
                        ON CONFLICT (user) DO UPDATE SET reported_up_to = max(reported_up_to, excluded.reported_up_to)
                        """,
                    arguments: [user.rawValue, Int64(clamping: seq)]
                )
            }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM webhook") ?? 0
            guard count > limit else { return 0 }
            try db.execute(
                sql: "DELETE FROM webhook WHERE number IN (SELECT number FROM webhook ORDER BY number LIMIT ?)",
                arguments: [count - max(0, limit)]
            )
            return count - max(0, limit)
        }
    }

    package func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT w.number, w.id, w.user, w.created_at, w.attempts, w.body FROM webhook w
                    WHERE w.due <= ?1 AND (w.user = 0 OR NOT EXISTS (SELECT 1 FROM webhook e WHERE e.user = w.user
                        AND e.number < w.number AND e.due > ?1 AND e.attempts < ?2))
                    ORDER BY w.number LIMIT ?3
                    """,
                arguments: [
                    now.rawValue, WebhookEvent.attemptsInOrder, min(max(limit, 0), StoreSettings.maxPageEntries),
                ]
            ).map { row in
                StoredWebhook(
                    number: row["number"],
                    event: WebhookEvent(
                        id: row["id"],
                        user: UserID(row["user"] as Int64),
                        createdAt: Timestamp(rawValue: row["created_at"]),
                        body: Array(row["body"] as Data)
                    ),
                    attempts: row["attempts"]
                )
            }
        }
    }

    package func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError) {
        try await write { (db, _) in
            for settlement in settlements {
                switch settlement {
                case .done(let number):
                    try db.execute(sql: "DELETE FROM webhook WHERE number = ?", arguments: [number])
                case .again(let number, let attempts, let due):
                    try db.execute(
                        sql: "UPDATE webhook SET attempts = ?, due = ? WHERE number = ?",
                        arguments: [attempts, due.rawValue, number]
                    )
                }
            }
        }
    }

    package func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?) {
        try await read { db in
            let row = try Row.fetchOne(db, sql: "SELECT count(*) AS number, min(due) AS next FROM webhook")
            let next: Int64? = row?["next"]
            return (row?["number"] ?? 0, next.map(Timestamp.init(rawValue:)))
        }
    }

    package func undeliveredMark(of user: UserID) async throws(HermesError) -> UInt64 {
        try await read { db in
            let mark = try Int64.fetchOne(
                db,
                sql: "SELECT reported_up_to FROM webhook_mark WHERE user = ?",
                arguments: [user.rawValue]
            )
            return UInt64(clamping: mark ?? 0)
        }
    }

    package func usersWithUndelivered(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
        try await users(
            """
            SELECT h.user FROM inbox_head h LEFT JOIN webhook_mark m ON m.user = h.user
            WHERE h.user > ? AND h.head > max(coalesce(m.reported_up_to, 0),
                coalesce((SELECT max(cursor) FROM device d WHERE d.user = h.user), 0))
            ORDER BY h.user LIMIT ?
            """,
            after: user,
            limit: limit
        )
    }
}
