// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reads contacts and groups on one connection's snapshot, or on the writer.
///
/// The lists leave out damaged rows. The ids of these rows are above all others, so a page of damaged rows alone
/// comes after the last sound row. A group whose members include a damaged row cannot be read, because permissions
/// depend on the members.
struct SocialReader {
    let db: Database

    func pair(_ user: UserID, _ peer: UserID) throws -> ContactPair {
        ContactPair(own: try row(user, peer), other: try row(peer, user))
    }

    private func row(_ owner: UserID, _ peer: UserID) throws -> ContactRow {
        let query = try PreparedStatement(db, "SELECT wants, blocks FROM contact WHERE owner = ? AND peer = ?")
        query.bind(owner, at: 1)
        query.bind(peer, at: 2)
        return try query.first { ContactRow(wants: $0.integer(0) != 0, blocks: $0.integer(1) != 0) } ?? ContactRow()
    }

    /// The query for an account's contacts whose ids are above a given id, up to a limit. It reads only rows of the
    /// contact list; a test counts the steps.
    static let contactQuery = """
        SELECT a.id, a.nick_name, a.nick_key, a.avatar_url, a.is_disabled, a.created_at, c.wants, c.blocks, o.wants, \
        o.blocks FROM contact c INDEXED BY contact_listed \
        CROSS JOIN contact o ON o.owner = c.peer AND o.peer = c.owner CROSS JOIN account a ON a.id = c.peer \
        WHERE c.owner = ?1 AND c.peer > ?2 AND c.is_listed = 1 ORDER BY c.peer LIMIT ?3
        """

    func contacts(of user: UserID, after: UserID?, limit: Int, skipping damage: Damage) throws -> [Contact] {
        let query = try PreparedStatement(db, Self.contactQuery)
        query.bind(user, at: 1)
        query.bind(Int64(after?.rawValue ?? 0), at: 2)
        query.bind(Int64(StoreSettings.pageLimit(limit)), at: 3)
        return try damage.list(query, name: { "account \($0.integer(0))" }, read: Self.contact).compactMap { $0 }
    }

    private static func contact(_ row: PreparedStatement) throws -> Contact? {
        let pair = ContactPair(
            own: ContactRow(wants: row.integer(6) != 0, blocks: row.integer(7) != 0),
            other: ContactRow(wants: row.integer(8) != 0, blocks: row.integer(9) != 0)
        )
        guard let state = pair.state else { return nil }
        return Contact(account: try AccountRow.account(row), state: state)
    }

    func blockers(of user: UserID, among users: [UserID]) throws -> Set<UserID> {
        let query = try PreparedStatement(db, "SELECT 1 FROM contact WHERE owner = ? AND peer = ? AND blocks = 1")
        query.bind(user, at: 2)
        var blockers: Set<UserID> = []
        for other in users {
            query.bind(other, at: 1)
            if try query.first({ _ in true }) == true { blockers.insert(other) }
        }
        return blockers
    }

    /// The columns that ``summary(_:)`` reads.
    private static let groupColumns =
        "g.id, g.name, g.avatar_url, g.is_muted, g.created_at, g.members, g.is_history_open"

    func group(_ id: GroupID) throws -> Group? {
        let members = try members(of: id)
        let query = try PreparedStatement(db, "SELECT \(Self.groupColumns) FROM chat_group g WHERE g.id = ?")
        query.bind(Int64(id.rawValue), at: 1)
        return try query.first { Group(try summary($0), members: members) }
    }

    private func members(of id: GroupID) throws -> [GroupMember] {
        let query = try PreparedStatement(
            db,
            "SELECT user, role, muted_until, joined_after FROM group_member WHERE group_id = ? ORDER BY user"
        )
        query.bind(Int64(id.rawValue), at: 1)
        var members: [GroupMember] = []
        try query.forEachRow { row in
            guard let role = UInt8(exactly: row.integer(1)).flatMap(GroupRole.init(rawValue:)) else {
                throw StoreFailure.damagedRow
            }
            members.append(
                GroupMember(
                    user: try row.user(0),
                    role: role,
                    mutedUntil: row.timestamp(2),
                    joinedAfter: try row.sequence(3)
                )
            )
        }
        return members
    }

    /// The queries that list groups. None of them reads members; a test counts the steps.
    enum GroupQuery {
        /// The groups of a user whose ids are above a given id, up to a limit.
        static let ofUser = """
            SELECT \(SocialReader.groupColumns) FROM group_member m JOIN chat_group g ON g.id = m.group_id \
            WHERE m.user = ?1 AND m.group_id > ?2 ORDER BY m.group_id LIMIT ?3
            """
        /// The groups whose ids are above one id and up to another, and whose names contain a given text, up to a
        /// limit.
        static let named = """
            SELECT \(SocialReader.groupColumns) FROM chat_group g \
            WHERE g.id > ?1 AND g.id <= ?2 AND (?3 = '' OR instr(lower(g.name), ?3) > 0) ORDER BY g.id LIMIT ?4
            """
    }

    func groups(of user: UserID, after: GroupID?, limit: Int, skipping damage: Damage) throws -> [GroupSummary] {
        let query = try PreparedStatement(db, GroupQuery.ofUser)
        query.bind(user, at: 1)
        query.bind(Int64(after?.rawValue ?? 0), at: 2)
        query.bind(Int64(StoreSettings.pageLimit(limit)), at: 3)
        return try damage.list(query, name: { "group \($0.integer(0))" }, read: summary)
    }

    func groups(
        after: GroupID?,
        named key: String,
        limit: Int,
        skipping damage: Damage
    ) throws -> (found: [GroupSummary], next: GroupID?) {
        let after = Int64(after?.rawValue ?? 0)
        // This call looks only at groups up to this id; the next call continues after it.
        let place = try PreparedStatement(db, "SELECT id FROM chat_group WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?")
        place.bind(after, at: 1)
        place.bind(Int64(StoreSettings.maxSearched - 1), at: 2)
        let end = try place.first { $0.integer(0) }
        let query = try PreparedStatement(db, GroupQuery.named)
        let limit = StoreSettings.pageLimit(limit)
        query.bind(after, at: 1)
        query.bind(end ?? Int64.max, at: 2)
        query.bind(Int64(limit), at: 4)
        let found = try query.bind(key, at: 3) {
            try damage.list(query, name: { "group \($0.integer(0))" }, read: summary)
        }
        let next =
            found.count < limit ? end.flatMap { Int32(exactly: $0) }.flatMap(GroupID.init(rawValue:)) : found.last?.id
        return (found, next)
    }

    private func summary(_ row: PreparedStatement) throws -> GroupSummary {
        guard let id = Int32(exactly: row.integer(0)).flatMap(GroupID.init(rawValue:)) else {
            throw StoreFailure.damagedRow
        }
        return GroupSummary(
            id: id,
            name: row.text(1) ?? "",
            avatarURL: row.text(2) ?? "",
            isMuted: row.integer(3) != 0,
            isHistoryOpen: row.integer(6) != 0,
            memberCount: Int(row.integer(5)),
            createdAt: row.timestamp(4)
        )
    }

    /// Returns the same value as ``Group/readableAfter(_:)``, but does not read the group's other members.
    func readableAfter(_ user: UserID, in group: GroupID) throws -> UInt64? {
        let query = try PreparedStatement(
            db,
            """
            SELECT \(Self.groupColumns), m.joined_after \
            FROM group_member m JOIN chat_group g ON g.id = m.group_id WHERE m.group_id = ? AND m.user = ?
            """
        )
        query.bind(Int64(group.rawValue), at: 1)
        query.bind(user, at: 2)
        return try query.first { row in
            Group(try summary(row), members: [GroupMember(user: user, joinedAfter: try row.sequence(7))]).readableAfter(
                user
            )
        } ?? nil
    }

    func names(of users: [UserID]) throws -> [UserID: String] {
        let query = try PreparedStatement(db, "SELECT nick_name FROM account WHERE id = ?")
        var names: [UserID: String] = [:]
        for user in users {
            query.bind(user, at: 1)
            names[user] = try query.first { $0.text(0) ?? "" }
        }
        return names
    }
}
