// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore
import Synchronization

extension SQLiteStore: WebhookStore {
    package func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) async throws(HermesError) -> Int {
        try await write { [self] (db, _) in
            let before = try webhookCount(db)
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
                // The account may have been deleted meanwhile, or its deletion may have begun.
                try db.execute(
                    sql: """
                        INSERT INTO webhook_mark (user, reported_up_to)
                        SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM inbox_head WHERE user = ?1)
                        ON CONFLICT (user) DO UPDATE SET reported_up_to = max(reported_up_to, excluded.reported_up_to)
                        """,
                    arguments: [user.rawValue, Int64(clamping: seq)]
                )
            }
            // If the limit was lowered, the surplus is dropped over several calls.
            let most = events.count + Self.maxDropped
            var early = 0
            for user in Set(events.compactMap(\.user)) {
                early += try Self.trimLine(of: user, limit: limit, most: most - early, db)
            }
            let count = before + events.count - early
            let dropped = min(max(0, count - max(0, limit)), most - early)
            if dropped > 0 {
                try db.execute(
                    sql: "DELETE FROM webhook WHERE number IN (SELECT number FROM webhook ORDER BY number LIMIT ?)",
                    arguments: [dropped]
                )
            }
            keepCount(count - dropped, db)
            return early + dropped
        }
    }

    /// Drops a user's oldest events beyond the user's share, but at most `most` events.
    private static func trimLine(of user: UserID, limit: Int, most: Int, _ db: Database) throws -> Int {
        let share = WebhookEvent.maxWaiting(perUserOf: limit)
        let line = try Int64.fetchAll(db, sql: WebhookQuery.line, arguments: [user.rawValue, share + most])
        guard line.count > share else { return 0 }
        try db.execute(
            sql: "DELETE FROM webhook WHERE user = ?1 AND attempts < \(WebhookEvent.attemptsInOrder) AND number <= ?2",
            arguments: [user.rawValue, line[line.count - share - 1]]
        )
        return db.changesCount
    }

    /// The largest number of events that a transaction drops in addition to the number of events that it appends.
    private static let maxDropped = 1_000

    /// Returns the number of waiting events, which is counted once and then kept. Must be called on the writer, before
    /// a change.
    private func webhookCount(_ db: Database) throws -> Int {
        // The number is unknown until the change is committed, because the change may fail.
        let known = waitingWebhooks.withLock { known in
            defer { known = nil }
            return known
        }
        return try known ?? Int.fetchOne(db, sql: "SELECT count(*) FROM webhook") ?? 0
    }

    /// Keeps the number of waiting events for later calls, if this transaction is committed.
    private func keepCount(_ count: Int, _ db: Database) {
        // This runs on the writer, before the next transaction.
        db.afterNextTransaction { [self] _ in waitingWebhooks.withLock { $0 = count } }
    }

    /// The queries for due events; a test checks their plans for full scans.
    enum WebhookQuery {
        static let due = """
            SELECT number, user, due, id, created_at, attempts, body FROM webhook \
            WHERE due <= ?1 AND (due, number) > (?2, ?3) ORDER BY due, number LIMIT ?4
            """
        /// The events for which later events of the same user must wait, in order.
        static let line = """
            SELECT number FROM webhook WHERE user = ?1 AND attempts < \(WebhookEvent.attemptsInOrder) \
            ORDER BY number LIMIT ?2
            """
        static let next = "SELECT min(due) FROM webhook"
    }

    /// The smallest limit for the rows of one query for due events.
    private static let leastLooked = 100
    /// The number of due events after which no further query is made. This many events are read only if a few users
    /// have most of them.
    private static let mostLooked = 10_000
    /// The bytes of due events after which no further query is made.
    private static let mostLookedBytes = 8 << 20

    /// The events after a position of the queue, in the order of their due times, up to and including a due time.
    private struct DueRange {
        var after: (due: Int64, number: Int64)
        let end: Int64
    }

    package func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook] {
        let limit = StoreSettings.pageLimit(limit)
        guard limit > 0 else { return [] }
        return try await read { db in
            let ahead = now.advanced(by: WebhookEvent.maxWait).rawValue
            // See WebhookEvent.isDue. The last range is read first: later events of a user wait for the events in
            // this range, and no new events are added to this range.
            var ranges = [
                DueRange(after: (due: .min, number: .min), end: now.rawValue),
                DueRange(after: (due: ahead, number: .max), end: .max),
            ]
            var due: [StoredWebhook] = []
            var dueBytes = 0
            var found: [StoredWebhook] = []
            while let range = ranges.popLast(), due.count < Self.mostLooked, dueBytes < Self.mostLookedBytes,
                found.count < limit
            {
                let rows = try Row.fetchAll(
                    db,
                    sql: WebhookQuery.due,
                    arguments: [
                        range.end, range.after.due, range.after.number, max(limit, Self.leastLooked, due.count),
                    ]
                )
                guard let last = rows.last else { continue }
                ranges.append(DueRange(after: (due: last["due"], number: last["number"]), end: range.end))
                due += rows.map { row in
                    StoredWebhook(
                        number: row["number"],
                        event: WebhookEvent(
                            id: row["id"],
                            user: UserID(row["user"] as Int64),
                            createdAt: Timestamp(rawValue: row["created_at"]),
                            body: Array(row["body"] as Data)
                        ),
                        // A damaged number must not overflow when the next attempt is counted.
                        attempts: min(max(row["attempts"], 0), 1 << 30)
                    )
                }
                dueBytes += due.suffix(rows.count).reduce(0) { $0 + $1.event.body.count }
                // Many of these events may wait for an earlier event of their user, or exceed the number for one user.
                // Then the loop reads further events.
                found = Self.fair(try Self.inOrder(due.sorted { $0.number < $1.number }, db))
            }
            return Array(found.prefix(limit))
        }
    }

    /// Keeps the first few events of each user, and all events that concern no user.
    private static func fair(_ webhooks: [StoredWebhook]) -> [StoredWebhook] {
        var counts: [UserID: Int] = [:]
        return webhooks.filter { webhook in
            guard let user = webhook.event.user else { return true }
            counts[user, default: 0] += 1
            return counts[user, default: 0] <= WebhookEvent.maxDuePerUser
        }
    }

    /// Leaves out each event that must wait for an earlier event of its user, if that earlier event is not in the list.
    private static func inOrder(_ webhooks: [StoredWebhook], _ db: Database) throws -> [StoredWebhook] {
        let numbers = Set(webhooks.map(\.number))
        var counts: [UserID: Int] = [:]
        for webhook in webhooks { if let user = webhook.event.user { counts[user, default: 0] += 1 } }
        var ends: [UserID: Int64] = [:]
        for (user, count) in counts {
            let line = try Int64.fetchAll(db, sql: WebhookQuery.line, arguments: [user.rawValue, count + 1])
            if let first = line.first(where: { !numbers.contains($0) }) { ends[user] = first }
        }
        return webhooks.filter { webhook in
            guard let user = webhook.event.user, let end = ends[user] else { return true }
            return webhook.number < end
        }
    }

    package func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError) {
        try await write { [self] (db, _) in
            var count = try webhookCount(db)
            for settlement in settlements {
                switch settlement {
                case .done(let number):
                    try db.execute(sql: "DELETE FROM webhook WHERE number = ?", arguments: [number])
                    count -= db.changesCount
                case .again(let number, let attempts, let due):
                    try db.execute(
                        sql: "UPDATE webhook SET attempts = ?, due = ? WHERE number = ?",
                        arguments: [attempts, due.rawValue, number]
                    )
                }
            }
            keepCount(count, db)
        }
    }

    package func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?) {
        let known = waitingWebhooks.withLock { $0 }
        return try await read { db in
            let count = try known ?? Int.fetchOne(db, sql: "SELECT count(*) FROM webhook") ?? 0
            let next = try Int64.fetchOne(db, sql: WebhookQuery.next)
            return (count, next.map(Timestamp.init(rawValue:)))
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
            WHERE h.user > ? AND h.user <= ? AND h.head > max(coalesce(m.reported_up_to, 0),
                coalesce((SELECT max(cursor) FROM device d
                    WHERE d.user = h.user AND d.proof > \(DeviceProof.claim.rawValue)), 0))
            ORDER BY h.user LIMIT ?
            """,
            among: "inbox_head",
            after: user,
            limit: limit
        )
    }
}
