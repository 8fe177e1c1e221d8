// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reads sessions, queues and retained publications on one snapshot.
struct SessionReader {
    let db: Database
    /// Gets the damaged rows, which are then skipped. If this is nil, a damaged row is an error.
    var damage: Damage?

    // MARK: Sessions

    private static let columns = """
        s.id, s.owner, s.client_id, s.expiry, s.is_online, s.expires_at, s.sent_up_to, h.head, h.queued, h.bytes, \
        s.payer, s.renamed_at
        """
    private static let tables = "session s JOIN session_head h ON h.session = s.id"

    /// The SQL for ``StoredSession/ownerName``, from ``SessionOwner/stored`` and the account, if there is one.
    private static let ownerName = """
        CASE substr(s.owner, 1, 1) WHEN 's' THEN substr(s.owner, 2) ELSE coalesce(a.nick_key, '') END AS owner_name
        """
    private static let account = """
        account a ON a.id = CASE substr(s.owner, 1, 1) WHEN 'u' THEN CAST(substr(s.owner, 2) AS INTEGER) END
        """

    /// Returns sessions without their subscriptions, for operators.
    func sessions(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int,
        searched: Int
    ) throws -> [StoredSession] {
        let end = try last(of: searched, after: id)
        let query = try PreparedStatement(
            db,
            """
            SELECT \(Self.columns), \(Self.ownerName) FROM \(Self.tables) LEFT JOIN \(Self.account) \
            WHERE s.id > ?1 AND s.id <= ?4 AND (?2 = '' OR instr(lower(s.client_id), ?2) > 0 \
            OR instr(lower(owner_name), ?2) > 0) ORDER BY s.id LIMIT ?3
            """
        )
        query.bind(id?.rawValue ?? 0, at: 1)
        query.bind(Int64(max(0, limit)), at: 3)
        query.bind(end, at: 4)
        // The text is normalized as in a search for groups.
        let wanted = Group.searchKey(text)
        var sessions: [StoredSession] = []
        try query.bind(wanted, at: 2) {
            try query.forEachRow { row in
                let found = try skipping("session \(row.integer(0))") { try session(row) }
                if var found {
                    found.ownerName = row.text(12) ?? ""
                    sessions.append(found)
                }
            }
        }
        return sessions
    }

    /// Returns the id of the last session to examine.
    private func last(of searched: Int, after id: DurableSessionID?) throws -> Int64 {
        // If all sessions may be examined, they need not be counted.
        guard searched < .max else { return .max }
        let query = try PreparedStatement(db, "SELECT id FROM session WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?")
        query.bind(id?.rawValue ?? 0, at: 1)
        query.bind(Int64(max(1, searched) - 1), at: 2)
        return try query.first { $0.integer(0) } ?? .max
    }

    func sessions() throws -> [StoredSession] {
        let query = try PreparedStatement(db, "SELECT \(Self.columns) FROM \(Self.tables) ORDER BY s.id")
        var sessions: [StoredSession] = []
        try query.forEachRow { row in
            let found = try skipping("session \(row.integer(0))") { try session(row) }
            if let found { sessions.append(found) }
        }
        try readSubscriptions(into: &sessions)
        return sessions
    }

    private func session(_ row: PreparedStatement) throws -> StoredSession {
        guard let owner = SessionOwner(stored: row.text(1) ?? "") else { throw StoreFailure.damagedRow }
        var session = StoredSession(
            id: DurableSessionID(rawValue: row.integer(0)),
            key: SessionKey(owner: owner, clientID: row.text(2) ?? "")
        )
        session.wasPresent = true
        session.expiry = row.isNull(3) ? nil : .milliseconds(row.integer(3))
        session.isOnline = row.integer(4) != 0
        session.expiresAt = row.isNull(5) ? nil : row.timestamp(5)
        session.sentUpTo = try row.sequence(6)
        session.head = try row.sequence(7)
        session.queuedCount = row.amount(8)
        session.queuedBytes = row.amount(9)
        session.payer = row.payer(10)
        session.renamedAt = try row.sequence(11)
        return session
    }

    /// Returns the queued publications, counted by the source that pays for them.
    func waiting() throws -> OwnerTally {
        let query = try PreparedStatement(
            db,
            """
            SELECT s.payer, h.queued, h.bytes, s.id FROM session_head h JOIN session s ON s.id = h.session \
            WHERE h.queued <> 0 OR h.bytes <> 0
            """
        )
        var tally = OwnerTally()
        try query.forEachRow { row in
            let (entries, bytes) = (row.soundAmount(1), row.soundAmount(2))
            if entries == nil || bytes == nil { damage?.found("queue size of session \(row.integer(3))") }
            tally.add(Holding(entries: entries ?? 0, bytes: bytes ?? 0), of: row.payer(0))
        }
        return tally
    }

    /// Reads the subscriptions into `sessions`, which must be sorted by id, as the query is.
    private func readSubscriptions(into sessions: inout [StoredSession]) throws {
        let query = try PreparedStatement(
            db,
            "SELECT options, identifiers, filter, session FROM session_subscription ORDER BY session"
        )
        var index = 0
        try query.forEachRow { row in
            let session = DurableSessionID(rawValue: row.integer(3))
            while index < sessions.count, sessions[index].id < session { index += 1 }
            guard index < sessions.count, sessions[index].id == session else { return }
            let found = try skipping("subscription of session \(session.rawValue)") { try subscription(row) }
            if let found { sessions[index].subscriptions.append(found) }
        }
    }

    private func skipping<Value>(_ row: @autoclosure () -> String, _ read: () throws -> Value) throws -> Value? {
        guard let damage else { return try read() }
        return try damage.skipping(row(), read)
    }

    func subscriptions(of id: DurableSessionID) throws -> [DurableSubscription] {
        let query = try PreparedStatement(
            db,
            "SELECT options, identifiers, filter FROM session_subscription WHERE session = ?"
        )
        query.bind(id.rawValue, at: 1)
        var subscriptions: [DurableSubscription] = []
        try query.forEachRow { row in
            subscriptions.append(try subscription(row))
        }
        return subscriptions
    }

    private func subscription(_ row: PreparedStatement) throws -> DurableSubscription {
        let identifiers = row.isNull(1) ? [] : PublicationCoding.identifiers(row.bytes(1))
        return DurableSubscription(
            filter: row.text(2) ?? "",
            options: try PublicationCoding.options(row.integer(0), identifiers: identifiers)
        )
    }

    func released(of id: DurableSessionID) throws -> [UInt64] {
        try numbers("SELECT seq FROM session_released WHERE session = ? ORDER BY seq", of: id)
            .map { UInt64(bitPattern: $0) }
    }

    func received(of id: DurableSessionID) throws -> [UInt16] {
        try numbers("SELECT packet_id FROM session_received WHERE session = ? ORDER BY packet_id", of: id)
            .map { UInt16(clamping: $0) }
    }

    func partial(of id: DurableSessionID) throws -> [UInt16: PartialPublication] {
        let query = try PreparedStatement(
            db,
            """
            SELECT packet_id, part, content, targets FROM session_received_part WHERE session = ? \
            ORDER BY packet_id, part
            """
        )
        query.bind(id.rawValue, at: 1)
        var found: [UInt16: PartialPublication] = [:]
        try query.forEachRow { row in
            let packetID = UInt16(clamping: row.integer(0))
            var partial = found[packetID] ?? PartialPublication(content: row.integer(2))
            try PublicationCoding.read(row.bytes(3), into: &partial)
            partial.parts = Int(clamping: row.integer(1)) &+ 1
            found[packetID] = partial
        }
        return found
    }

    private func numbers(_ sql: String, of id: DurableSessionID) throws -> [Int64] {
        let query = try PreparedStatement(db, sql)
        query.bind(id.rawValue, at: 1)
        var numbers: [Int64] = []
        try query.forEachRow { row in
            numbers.append(row.integer(0))
        }
        return numbers
    }

    // MARK: Publications

    func queued(
        of id: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int,
        isSharedOnly: Bool = false
    ) throws -> QueuePage {
        var page = QueuePage(upTo: seq, isAtEnd: true)
        // The remaining rows of a removed session belong to nobody.
        guard try !numbers("SELECT 1 FROM session_head WHERE session = ?", of: id).isEmpty else { return page }
        // `rows` and `bytes` count all rows that were read. Damaged rows count, too, so that they do not look like the
        // end of the queue.
        var (rows, bytes) = (0, 0)
        var last: TopicName?
        // All fresh rows of a queue are newer than its settled rows.
        for table in FreshTables.queue.both {
            guard rows < limit, bytes < maxBytes else { break }
            let query = try PreparedStatement(db, Self.queueSQL(table, isSharedOnly: isSharedOnly))
            query.bind(id.rawValue, at: 1)
            query.bind(min(seq, UInt64(Int64.max)), at: 2)
            query.bind(Int64(limit - rows), at: 3)
            try query.forEachRowWhile { row in
                rows += 1
                bytes += row.amount(2)
                // A damaged seq is not passed on. Otherwise the next page would begin after all future publications.
                if let seq = try? row.sequence(0) { page.upTo = seq }
                let found = try skipping("queue entry \(row.unsigned(0)) of session \(id.rawValue)") {
                    try queued(row, last: &last)
                }
                if let found { page.publications.append(found) }
                return bytes < maxBytes
            }
        }
        page.isAtEnd = rows < limit && bytes < maxBytes || page.upTo == seq
        return page
    }

    static func queueSQL(_ table: String, isSharedOnly: Bool) -> String {
        """
        SELECT q.seq, q.flags, q.weight, \(QueueExpiry.time("q.expires_at")), q.identifiers, q.publication, \
        q.published_at, q.topic, q.payload, q.details, p.published_at, p.topic, p.payload, p.details, q.share \
        FROM \(table) q LEFT JOIN publication p ON p.key = q.publication \
        WHERE q.session = ? AND q.seq > ? \(isSharedOnly ? "AND q.share IS NOT NULL " : "")ORDER BY q.seq LIMIT ?
        """
    }

    private func queued(_ row: PreparedStatement, last: inout TopicName?) throws -> QueuedPublication {
        let flags = row.integer(1)
        let delivery = try PublicationCoding.delivery(flags)
        // The first column of the content: of the queue's row itself, or of the shared publication.
        let first: Int32 = row.isNull(5) ? 6 : 10
        return QueuedPublication(
            seq: try row.sequence(0),
            qos: delivery.qos,
            identifiers: row.isNull(4) ? [] : PublicationCoding.identifiers(row.bytes(4)),
            retain: delivery.retain,
            share: row.isNull(14) ? nil : row.text(14),
            publication: try publication(row, flags: flags, expiry: 3, from: first, last: &last)
        )
    }

    func retained(of topics: [TopicName]) throws -> [StoredPublication] {
        let query = try PreparedStatement(db, "\(Self.selectRetained) WHERE topic = ?")
        var found: [StoredPublication] = []
        for topic in topics {
            try query.bind(topic.rawValue, at: 1) {
                try query.forEachRow { row in
                    if let publication = try retained(row) { found.append(publication) }
                }
            }
        }
        return found
    }

    func retained(
        after topic: TopicName?,
        limit: Int
    ) throws -> (publications: [StoredPublication], next: TopicName?) {
        // No topic is empty, so all topics come after the empty text.
        let query = try PreparedStatement(db, "\(Self.selectRetained) WHERE topic > ? ORDER BY topic")
        var found: [StoredPublication] = []
        var next: TopicName?
        try query.bind(topic?.rawValue ?? "", at: 1) {
            try query.forEachRowWhile { row in
                if let publication = try retained(row) { found.append(publication) }
                // A damaged row does not end a page.
                next = found.count < limit ? nil : found.last?.topic
                return next == nil
            }
        }
        return (found, next)
    }

    private static let selectRetained =
        "SELECT flags, expires_at, published_at, topic, payload, details, payer FROM retained"

    /// - Returns: nil if the row is damaged.
    private func retained(_ row: PreparedStatement) throws -> StoredPublication? {
        var last: TopicName?
        var found = try skipping("a retained publication") {
            try publication(row, flags: row.integer(0), expiry: 1, from: 2, last: &last)
        }
        found?.source = row.payer(6)
        return found
    }

    /// - Parameter last: the topic of the previous row, which is often the same.
    private func publication(
        _ row: PreparedStatement,
        flags: Int64,
        expiry: Int32,
        from first: Int32,
        last: inout TopicName?
    ) throws -> StoredPublication {
        let topic: TopicName
        if let last, row.hasText(last.rawValue, in: first + 1) {
            topic = last
        } else {
            guard let text = row.text(first + 1) else { throw StoreFailure.damagedRow }
            topic = TopicName(checked: text)
            last = topic
        }
        let published = try PublicationCoding.published(flags)
        let expiresAt = row.isNull(expiry) ? nil : row.timestamp(expiry)
        let details = row.isNull(first + 3) ? nil : row.bytes(first + 3)
        return StoredPublication(
            topic: topic,
            ownedPayload: row.buffer(first + 2),
            qos: published.qos,
            retain: published.retain,
            details: try PublicationCoding.details(details, expiresAt: expiresAt),
            publishedAt: row.timestamp(first)
        )
    }
}
