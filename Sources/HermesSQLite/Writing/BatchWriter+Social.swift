// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Contacts and groups.
extension BatchWriter {
    mutating func isMember(_ user: UserID, of conversation: ConversationID) throws -> Bool {
        guard case .group(let id) = conversation else { return true }
        return try loadGroup(id)?.member(user) != nil
    }

    mutating func loadGroup(_ id: GroupID) throws -> Group? {
        if let known = cache.groups[id] { return known }
        guard let group = try SocialReader(db: db).group(id) else { return nil }
        cache.groups[id] = group
        return group
    }

    // MARK: Contacts

    mutating func apply(
        _ command: ContactCommand,
        by principal: Principal,
        to peer: UserID,
        message: String
    ) throws -> WriteOutcome {
        let user = principal.user
        guard user != peer else { return .refused(try refusal(of: [user]) ?? StoreRefusals.ownContact) }
        if let refusal = try refusal(of: [user, peer]) { return .refused(refusal) }
        var pair = try SocialReader(db: db).pair(user, peer)
        let before = pair
        let kind = try pair.apply(command)
        if kind == .requested, try !hasReserve(in: peer, by: user, InboxBudget.entryBytes) {
            return .refused(InboxBudget.isFull)
        }
        if pair != before {
            try write(pair, of: user, and: peer)
            if pair.own.blocks { cache.inboxes[user]?.blocksSomebody = true }
        }
        guard let kind else { return .eventAppended([]) }
        let event = ContactEvent(kind: kind, user: user, nickName: principal.nickName.rawValue, message: message)
        return try appendEvent(.contact(event), to: [peer])
    }

    private func write(_ pair: ContactPair, of user: UserID, and peer: UserID) throws {
        let isEmpty = pair == ContactPair()
        for (owner, other, row, back) in [(user, peer, pair.own, pair.other), (peer, user, pair.other, pair.own)] {
            let statement = try PreparedStatement(
                db,
                isEmpty
                    ? "DELETE FROM contact WHERE owner = ? AND peer = ?"
                    : "INSERT OR REPLACE INTO contact (owner, peer, wants, blocks, is_listed) VALUES (?, ?, ?, ?, ?)"
            )
            statement.bind(owner, at: 1)
            statement.bind(other, at: 2)
            if !isEmpty {
                statement.bind(row.wants ? 1 : Int64(0), at: 3)
                statement.bind(row.blocks ? 1 : Int64(0), at: 4)
                statement.bind(ContactPair(own: row, other: back).state == nil ? Int64(0) : 1, at: 5)
            }
            try statement.run()
        }
    }

    // MARK: Groups

    mutating func apply(_ command: GroupCommand, by user: UserID, requiresContacts: Bool) throws -> WriteOutcome {
        guard try loadInbox(of: user) else { return .refused(StoreRefusals.noSuchAccount) }
        for added in command.added where added != user {
            guard try loadInbox(of: added) else { return .refused(StoreRefusals.noSuchAccount) }
            guard try !blocks(added, user) else { return .refused(ContactPair.blockedByOther) }
            guard try !requiresContacts || SocialReader(db: db).pair(user, added).state == .accepted else {
                return .refused(ContactPair.notAContact)
            }
        }
        try checkGroups(command, by: user)
        let outcome: Group.Outcome
        if let id = command.group {
            guard let group = try loadGroup(id) else { return .refused(Group.notAMember) }
            let lastSeq = try knownConversation(.group(id))?.lastSeq ?? 0
            outcome = try group.applying(command, by: user, lastSeq: lastSeq)
            try write(outcome, before: group)
        } else {
            guard case .create(let name, let members) = command else { throw StoreFailure.damagedRow }
            outcome = try create(name: name, members: members, by: user)
        }
        return .groupChanged(outcome.group, deliveries: try tell(outcome))
    }

    /// Checks that none of the new members is already in too many groups.
    private mutating func checkGroups(_ command: GroupCommand, by user: UserID) throws {
        let joining = command.group == nil ? command.added + [user] : command.added
        guard !joining.isEmpty else { return }
        let group = try command.group.flatMap { try loadGroup($0) }
        // The number of a user's groups is stored, so that it need not be counted: a request may add hundreds of
        // members, each of whom may be in hundreds of groups.
        let select = try PreparedStatement(db, "SELECT groups FROM groups_of_user WHERE user = ?")
        for member in joining where group?.member(member) == nil {
            select.bind(member, at: 1)
            let caller: GroupCaller = member == user ? .itself : try isStranger(user, to: member) ? .stranger : .contact
            try settings.checkGroups(try select.first { Int($0.integer(0)) } ?? 0, addedBy: caller)
        }
    }

    /// Delivers the notices of a change that was written.
    mutating func tell(_ outcome: Group.Outcome) throws -> [InboxDelivery] {
        cache.groups[outcome.group.id] = outcome.isDissolved ? nil : outcome.group
        var deliveries: [InboxDelivery] = []
        for notice in outcome.notices {
            // A member whose account is being deleted has no inbox.
            let recipients = try notice.recipients.filter { try loadSoundInbox(of: $0) }
            guard !recipients.isEmpty else { continue }
            // Without this error, the group would change although its members get no notice.
            guard case .eventAppended(let told) = try appendEvent(.group(notice.event), to: recipients) else {
                throw StoreFailure.damagedRow
            }
            deliveries += told
        }
        return deliveries
    }

    private func create(name: String, members: [UserID], by user: UserID) throws -> Group.Outcome {
        // The group is checked before it gets a number, because a refused operation must write nothing.
        guard let probe = GroupID(rawValue: .max) else { throw StoreFailure.damagedRow }
        _ = try Group.created(probe, name: name, members: members, by: user, now: now)
        let insert = try PreparedStatement(
            db,
            "INSERT INTO chat_group (name, avatar_url, is_muted, created_at) VALUES (?, '', 0, ?)"
        )
        insert.bind(now, at: 2)
        try insert.bind(name, at: 1) { try insert.run() }
        guard let id = Int32(exactly: db.lastInsertedRowID).flatMap(GroupID.init(rawValue:)) else {
            throw StoreFailure.damagedRow
        }
        let outcome = try Group.created(id, name: name, members: members, by: user, now: now)
        for member in outcome.group.members { try write(member, of: id) }
        return outcome
    }

    /// Writes the differences between a group and its state before the change.
    func write(_ outcome: Group.Outcome, before: Group) throws {
        let group = outcome.group
        for member in before.members where group.member(member.user) == nil {
            let delete = try PreparedStatement(db, "DELETE FROM group_member WHERE group_id = ? AND user = ?")
            delete.bind(Int64(group.id.rawValue), at: 1)
            delete.bind(member.user, at: 2)
            try delete.run()
            let forget = try PreparedStatement(
                db,
                """
                DELETE FROM read_mark WHERE user = ? AND conversation = \
                (SELECT id FROM conversation WHERE kind = 2 AND a = ? AND b = 0)
                """
            )
            forget.bind(member.user, at: 1)
            forget.bind(Int64(group.id.rawValue), at: 2)
            try forget.run()
        }
        for member in group.members where before.member(member.user) != member { try write(member, of: group.id) }
        if outcome.isDissolved {
            let delete = try PreparedStatement(db, "DELETE FROM chat_group WHERE id = ?")
            delete.bind(Int64(group.id.rawValue), at: 1)
            try delete.run()
            // The purge deletes the conversation after its messages.
            let list = try PreparedStatement(
                db,
                """
                INSERT INTO conversation_gone (last_key, conversation) \
                SELECT coalesce((SELECT max(key) FROM message), 0), id FROM conversation \
                WHERE kind = 2 AND a = ? AND b = 0
                """
            )
            list.bind(Int64(group.id.rawValue), at: 1)
            try list.run()
        } else if group.summary != before.summary {
            let update = try PreparedStatement(
                db,
                "UPDATE chat_group SET name = ?, avatar_url = ?, is_muted = ?, is_history_open = ? WHERE id = ?"
            )
            update.bind(group.summary.isMuted ? 1 : Int64(0), at: 3)
            update.bind(group.summary.isHistoryOpen ? 1 : Int64(0), at: 4)
            update.bind(Int64(group.id.rawValue), at: 5)
            try update.bind(group.summary.name, at: 1) {
                try update.bind(group.summary.avatarURL, at: 2) { try update.run() }
            }
        }
    }

    private func write(_ member: GroupMember, of group: GroupID) throws {
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO group_member (group_id, user, role, muted_until, joined_after) VALUES (?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET role = excluded.role, muted_until = excluded.muted_until, \
            joined_after = excluded.joined_after
            """
        )
        insert.bind(Int64(group.rawValue), at: 1)
        insert.bind(member.user, at: 2)
        insert.bind(Int64(member.role.rawValue), at: 3)
        insert.bind(member.mutedUntil, at: 4)
        insert.bind(member.joinedAfter, at: 5)
        try insert.run()
    }
}
