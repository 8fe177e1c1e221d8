// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Deletes a bounded number of rows that are no longer needed, in the writer's transaction.
///
/// Every step finds its rows through an index that contains almost nothing else, so that a purge without work costs
/// nothing, however large the store is.
struct Purger {
    let db: Database
    let settings: StoreSettings
    let now: Timestamp
    let damage: Damage
    private let correction: ClockCorrection
    private var remaining: Int
    private var done = 0
    /// The users whose inboxes were changed.
    private(set) var users: Set<UserID> = []
    /// The entries that these users' inboxes lost.
    private(set) var removals: [UserID: InboxRemoval] = [:]
    private(set) var effects = CommitEffects()
    /// The number of removed references to each message.
    private var released: [Int64: Int64] = [:]

    init(db: Database, settings: StoreSettings, now: Timestamp, limit: Int, damage: Damage, jumps: ClockJumps) {
        self.damage = damage
        correction = ClockCorrection(db: db, jumps: jumps)
        self.db = db
        self.settings = settings
        self.now = now
        remaining = max(limit, 0)
    }

    /// The queries that find the work; a test checks their plans for full scans.
    enum Query {
        static let acknowledged = """
            SELECT user, acknowledged FROM inbox_head WHERE acknowledged >= oldest AND acknowledged <= head \
            AND head < \(PreparedStatement.maxSequence) ORDER BY user
            """
        static let gone = "SELECT user FROM inbox_gone ORDER BY user"
        static let entries = FreshTables.inbox.both.map { table in
            "SELECT seq, message, source, weight FROM \(table) WHERE user = ? AND seq <= ? ORDER BY seq LIMIT ?"
        }
        static let expiredMessages = """
            SELECT key, deliveries, committed_at, sender FROM message WHERE due IS NULL AND expires_at <= ? \
            ORDER BY expires_at
            """
        static let expiredEvents = FreshTables.inbox.both.map { table in
            """
            SELECT user, seq, committed_at FROM \(table) \
            WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at
            """
        }
        static let dueMessages = """
            SELECT key, committed_at, sender FROM message WHERE due IS NOT NULL AND due <= ? ORDER BY due
            """
        /// The deletions of push records that are not inbox entries.
        static let expiredPushRecords = [
            """
            DELETE FROM push_claim WHERE (owner, key) IN \
            (SELECT owner, key FROM push_claim WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
            """,
            """
            DELETE FROM push_collapse WHERE (user, name) IN \
            (SELECT user, name FROM push_collapse WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
            """,
        ]
        static let oldestMessage = "SELECT min(key) FROM message"
        static let goneConversations = """
            DELETE FROM conversation_gone WHERE (last_key, conversation) IN \
            (SELECT last_key, conversation FROM conversation_gone WHERE last_key < ? ORDER BY last_key LIMIT ?) \
            RETURNING conversation
            """
        static let all =
            [acknowledged, expiredMessages, dueMessages, oldestMessage, goneConversations] + entries + expiredEvents
            + expiredPushRecords
    }

    mutating func run() throws -> Int {
        try deleteGone()
        try deleteAcknowledged()
        try deleteExpiredMessages()
        try deleteExpiredEvents()
        try deleteExpiredPushRecords()
        try deleteGoneConversations()
        for user in users { try updateHead(of: user) }
        let released = released.sorted { $0.key < $1.key }
        let due = try dueMessages()
        guard !released.isEmpty || !due.isEmpty else { return done }
        let messages = try MessageReleaser(db: db, settings: settings, now: now, correction: correction)
        // A due message has no references left, whatever number its row has.
        for (key, count) in released + due.map({ (key: $0, value: Int64.max) }) {
            // A damaged message can be skipped, because it is read before any change to it is written.
            try damage.skipping("message \(key)") { try messages.release(key, references: count) }
        }
        count(due.count)
        return done
    }

    private mutating func uncount(source: Int64, weight: Int, of user: UserID) {
        effects.inboxes.went(weight)
        removals[user, default: InboxRemoval()].bySource[source, default: Holding()].add(weight)
        guard let sender = Int32(exactly: source).flatMap(UserID.init(rawValue:)), sender != user else { return }
        effects.unread[sender, default: 0] -= weight
    }

    private mutating func count(_ rows: Int) {
        done += rows
        remaining = max(remaining - rows, 0)
    }

    private mutating func deleteGone() throws {
        let query = try PreparedStatement(db, Query.gone)
        let found = try damage.list(
            query,
            limit: remaining,
            name: { "inbox of user \($0.integer(0))" },
            read: { try $0.user(0) }
        )
        for user in found where remaining > 0 {
            for (table, entries) in zip(FreshTables.inbox.both, Query.entries) where remaining > 0 {
                try delete(from: table, entries, of: user, upTo: UInt64(Int64.max))
            }
            guard remaining > 0 else { return }
            let delete = try PreparedStatement(db, "DELETE FROM inbox_gone WHERE user = ?")
            delete.bind(user, at: 1)
            try delete.run()
            count(1)
        }
    }

    private mutating func deleteAcknowledged() throws {
        let heads = try PreparedStatement(db, Query.acknowledged)
        let found = try damage.list(
            heads,
            limit: remaining,
            name: { "inbox of user \($0.integer(0))" },
            read: { row in
                (user: try row.user(0), acknowledged: row.unsigned(1))
            }
        )
        for (user, acknowledged) in found where remaining > 0 {
            for (table, query) in zip(FreshTables.inbox.both, Query.entries) where remaining > 0 {
                try delete(from: table, query, of: user, upTo: acknowledged)
            }
            users.insert(user)
        }
    }

    private mutating func delete(
        from table: String,
        _ query: String,
        of user: UserID,
        upTo acknowledged: UInt64
    ) throws {
        let entries = try PreparedStatement(db, query)
        var last: UInt64 = 0
        var rows = 0
        entries.bind(user, at: 1)
        entries.bind(acknowledged, at: 2)
        entries.bind(Int64(remaining), at: 3)
        try entries.forEachRow { row in
            last = row.unsigned(0)
            rows += 1
            if !row.isNull(1) { released[row.integer(1), default: 0] += 1 }
            uncount(source: row.integer(2), weight: row.amount(3), of: user)
        }
        guard rows > 0 else { return }
        let delete = try PreparedStatement(db, "DELETE FROM \(table) WHERE user = ? AND seq <= ?")
        delete.bind(user, at: 1)
        delete.bind(last, at: 2)
        try delete.run()
        count(rows)
    }

    private mutating func deleteExpiredMessages() throws {
        let query = try PreparedStatement(db, Query.expiredMessages)
        query.bind(now, at: 1)
        // Without its sender, a message could not be released, and would be found again by each step.
        let found = try damage.list(
            query,
            limit: remaining,
            name: { "message \($0.integer(0))" },
            read: { row in
                (
                    key: row.integer(0),
                    storedAt: row.timestamp(2),
                    deliveries: try DeliveryList.decode(row.bytes(1)),
                    sender: try row.user(3)
                )
            }
        )
        for (key, storedAt, deliveries, _) in found where remaining > 0 {
            if try correction.correctMessage(key, storedAt: storedAt) {
                count(1)
                continue
            }
            // Releases all references, so that the message is not found here again.
            released[key] = Int64.max
            for (user, seq) in deliveries {
                for table in FreshTables.inbox.both {
                    let delete = try PreparedStatement(
                        db,
                        "DELETE FROM \(table) WHERE user = ? AND seq = ? AND message = ? RETURNING source, weight"
                    )
                    delete.bind(user, at: 1)
                    delete.bind(seq, at: 2)
                    delete.bind(key, at: 3)
                    guard let entry = try delete.first({ ($0.integer(0), $0.amount(1)) }) else { continue }
                    uncount(source: entry.0, weight: entry.1, of: user)
                    users.insert(user)
                    count(1)
                }
            }
        }
    }

    private mutating func deleteExpiredEvents() throws {
        for (table, text) in zip(FreshTables.inbox.both, Query.expiredEvents) {
            let query = try PreparedStatement(db, text)
            let delete = try PreparedStatement(
                db,
                "DELETE FROM \(table) WHERE user = ? AND seq = ? RETURNING source, weight"
            )
            query.bind(now, at: 1)
            let name = { (row: PreparedStatement) in "entry \(row.integer(1)) of user \(row.integer(0))" }
            let found = try damage.list(
                query,
                limit: remaining,
                name: name,
                read: { row in
                    (user: try row.user(0), seq: row.unsigned(1), storedAt: row.timestamp(2))
                }
            )
            for (user, seq, storedAt) in found {
                if try correction.correctEntry(seq, of: user, in: table, storedAt: storedAt) { continue }
                delete.bind(user, at: 1)
                delete.bind(seq, at: 2)
                if let entry = try delete.first({ ($0.integer(0), $0.amount(1)) }) {
                    uncount(source: entry.0, weight: entry.1, of: user)
                }
                users.insert(user)
            }
            count(found.count)
        }
    }

    private mutating func deleteExpiredPushRecords() throws {
        for sql in Query.expiredPushRecords {
            let delete = try PreparedStatement(db, sql)
            delete.bind(now, at: 1)
            delete.bind(Int64(remaining), at: 2)
            try delete.run()
            count(db.changesCount)
        }
    }

    /// Deletes each conversation of a dissolved group when the conversation has no messages left. The keys of
    /// messages increase with time. So a conversation has no messages if the oldest message of all is newer than the
    /// group's dissolution.
    private mutating func deleteGoneConversations() throws {
        let oldest = try PreparedStatement(db, Query.oldestMessage).first { $0.isNull(0) ? Int64.max : $0.integer(0) }
        let gone = try PreparedStatement(db, Query.goneConversations)
        var found: [Int64] = []
        gone.bind(oldest ?? .max, at: 1)
        gone.bind(Int64(remaining), at: 2)
        try gone.forEachRow { row in
            found.append(row.integer(0))
        }
        guard !found.isEmpty else { return }
        let delete = try PreparedStatement(db, "DELETE FROM conversation WHERE id = ?")
        for conversation in found {
            delete.bind(conversation, at: 1)
            try delete.run()
        }
        count(found.count)
    }

    /// Sets the oldest seq and the counts of an inbox, unless the inbox's row is damaged. Entries with a damaged seq do
    /// not count as the oldest.
    private mutating func updateHead(of user: UserID) throws {
        var removal = removals[user] ?? InboxRemoval()
        let removed = removal.bySource.values.reduce(into: Holding()) { $0 += $1 }
        let update = try PreparedStatement(db, Self.updateHeadSQL)
        update.bind(user, at: 1)
        update.bind(Int64(removed.entries), at: 2)
        update.bind(Int64(removed.bytes), at: 3)
        let found = try update.first { row in
            (oldest: try row.sequence(0), isEmpty: row.integer(1) != 0, use: row.counts(2))
        }
        if let found {
            removal.oldest = found.oldest
            let isPossible = found.use.map { found.isEmpty ? $0 == Holding() : $0.entries > 0 } ?? false
            removal.use = try isPossible ? found.use ?? Holding() : InboxCounts.recount(user, in: db)
        }
        removals[user] = removal
    }

    /// Limits damaged counts, so that the subtraction does not overflow. A count that was limited is still out of range
    /// after the subtraction.
    private static let updateHeadSQL = """
        UPDATE inbox_head SET oldest = coalesce(\
        (SELECT min(seq) FROM inbox WHERE user = ?1 AND seq BETWEEN 1 AND head), \
        (SELECT min(seq) FROM inbox_fresh WHERE user = ?1 AND seq BETWEEN 1 AND head), head + 1), \
        entries = max(min(entries, \(limit)), -\(limit)) - ?2, bytes = max(min(bytes, \(limit)), -\(limit)) - ?3 \
        WHERE user = ?1 AND head >= 0 AND head < \(PreparedStatement.maxSequence) \
        RETURNING oldest, oldest > head, entries, bytes
        """
    private static let limit = 2 * PreparedStatement.maxSum

    private mutating func dueMessages() throws -> [Int64] {
        let query = try PreparedStatement(db, Query.dueMessages)
        query.bind(now, at: 1)
        // Without its sender, a message could not be released, and would be found again by each step.
        let found = try damage.list(
            query,
            limit: remaining,
            name: { "message \($0.integer(0))" },
            read: { row in
                (key: row.integer(0), storedAt: row.timestamp(1), sender: try row.user(2))
            }
        )
        var keys: [Int64] = []
        for (key, storedAt, _) in found {
            if try correction.correctMessage(key, storedAt: storedAt) { count(1) } else { keys.append(key) }
        }
        return keys
    }
}

extension WriterCache.Inbox {
    /// Applies the changes of a purge to the cached inbox, so that its entries need not be counted again.
    ///
    /// - Parameter oldest: the seq of its oldest entry.
    mutating func remove(_ removal: InboxRemoval, oldest: UInt64) {
        self.oldest = oldest
        use = removal.use
        for (source, removed) in removal.bySource { shares?.remove(removed, from: source) }
    }
}
