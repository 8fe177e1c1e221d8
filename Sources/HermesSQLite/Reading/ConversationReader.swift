// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reads the list of an account's conversations on one connection's snapshot.
///
/// Each query walks along one index in the order of the list, and stops when the page is full.
struct ConversationReader {
    let db: Database
    let damage: Damage

    /// The queries, in the order of the list. The first one finds 1:1 conversations with accounts whose numbers are
    /// lower than the reader's number. The second one finds the reader's conversation with itself and 1:1
    /// conversations with higher numbers. The third one finds groups. A test checks the query plans.
    enum Query {
        static let lower = """
            SELECT c.a, p.nick_name, c.last_seq, c.last_at, r.seq, 0, c.quiet_b, 0, 0 FROM conversation c \
            LEFT JOIN account p ON p.id = c.a LEFT JOIN read_mark r ON r.user = ?1 AND r.conversation = c.id \
            WHERE c.kind = 1 AND c.b = ?1 AND c.a > ?2 AND c.a < ?1 AND c.last_seq > 0 ORDER BY c.a
            """
        static let higher = """
            SELECT c.b, p.nick_name, c.last_seq, c.last_at, r.seq, 0, c.quiet_a, 0, 0 FROM conversation c \
            LEFT JOIN account p ON p.id = c.b LEFT JOIN read_mark r ON r.user = ?1 AND r.conversation = c.id \
            WHERE c.kind = 1 AND c.a = ?1 AND c.b > ?2 AND c.last_seq > 0 ORDER BY c.b
            """
        static let groups = """
            SELECT m.group_id, g.name, c.last_seq, c.last_at, r.seq, m.joined_after, c.quiet_a, m.own_seq, m.own \
            FROM group_member m CROSS JOIN chat_group g ON g.id = m.group_id \
            LEFT JOIN conversation c ON c.kind = 2 AND c.a = m.group_id AND c.b = 0 \
            LEFT JOIN read_mark r ON r.user = ?1 AND r.conversation = c.id \
            WHERE m.user = ?1 AND m.group_id > ?2 ORDER BY m.group_id
            """
        static let all = [lower, higher, groups]
    }

    func conversations(of user: UserID, after place: ConversationPlace?, limit: Int) throws -> [ConversationSummary] {
        let limit = StoreSettings.pageLimit(limit)
        var found: [ConversationSummary] = []
        var lastPeer: Int64 = 0
        var lastGroup: Int64 = 0
        switch place {
        case .user(let peer): lastPeer = Int64(peer.rawValue)
        case .group(let group): (lastPeer, lastGroup) = (Int64(Int32.max), Int64(group.rawValue))
        case nil: break
        }
        for (sql, last) in [(Query.lower, lastPeer), (Query.higher, lastPeer), (Query.groups, lastGroup)] {
            guard found.count < limit else { break }
            let isGroup = sql == Query.groups
            let query = try PreparedStatement(db, sql)
            query.bind(user, at: 1)
            query.bind(last, at: 2)
            try query.forEachRowWhile { row in
                let summary = try damage.skipping("a conversation of user \(user.rawValue)") {
                    try Self.summary(row, isGroup: isGroup)
                }
                if let summary { found.append(summary) }
                return found.count < limit
            }
        }
        return found
    }

    private static func summary(_ row: PreparedStatement, isGroup: Bool) throws -> ConversationSummary {
        guard let number = Int32(exactly: row.integer(0)),
            let place = isGroup
                ? GroupID(rawValue: number).map(ConversationPlace.group)
                : UserID(rawValue: number).map(ConversationPlace.user)
        else { throw StoreFailure.damagedRow }
        // A group without messages has no conversation.
        let lastSeq = row.isNull(2) ? 0 : try row.sequence(2)
        let mark = row.isNull(4) ? 0 : try row.sequence(4)
        return ConversationSummary(
            place: place,
            name: row.text(1) ?? "",
            lastSeq: lastSeq,
            lastAt: row.isNull(3) ? nil : row.timestamp(3),
            readUpTo: mark,
            unread: RecentSeqs.count(
                after: max(mark, try row.sequence(5)),
                upTo: lastSeq,
                outside: RecentSeqs(newest: lastSeq, bits: row.unsigned(6)),
                and: RecentSeqs(newest: try row.sequence(7), bits: row.unsigned(8))
            )
        )
    }
}
