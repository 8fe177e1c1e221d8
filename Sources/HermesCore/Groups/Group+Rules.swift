// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rules of groups. They do no I/O; the stores apply them inside a commit.
extension Group {
    /// The result of a command on a group.
    package struct Outcome: Sendable, Hashable {
        /// The group after the change. It has no members if it was dissolved.
        package let group: Group
        package let isDissolved: Bool
        /// The notices to deliver, in order.
        package let notices: [Notice]
    }

    /// An event and the accounts whose inboxes get it.
    package struct Notice: Sendable, Hashable {
        package let event: GroupEvent
        package let recipients: [UserID]
    }

    /// Creates a group.
    ///
    /// - Throws: `.tooLarge`.
    package static func created(
        _ id: GroupID,
        name: String,
        members: [UserID],
        by creator: UserID,
        now: Timestamp
    ) throws(HermesError) -> Outcome {
        let others = Set(members).subtracting([creator]).map { GroupMember(user: $0) }
        try checkSize(others.count + 1)
        let summary = GroupSummary(id: id, name: name, memberCount: others.count + 1, createdAt: now)
        let group = Group(summary, members: others + [GroupMember(user: creator, role: .owner)])
        let event = GroupEvent(kind: .created, group: group.summary, by: creator, users: group.users)
        return Outcome(
            group: group,
            isDissolved: false,
            notices: [Notice(event: event, recipients: group.users)]
        )
    }

    /// Returns the recipients of a message from `sender`: the sender first, then all other members.
    ///
    /// - Throws: `.forbidden` if the sender is not a member, or is muted.
    package func recipients(ofMessageFrom sender: UserID, now: Timestamp) throws(HermesError) -> [UserID] {
        let member = try check(sender, is: .member)
        if member.role < .administrator {
            guard !summary.isMuted else { throw HermesError(.forbidden, "only administrators may send to this group") }
            guard member.mutedUntil <= now else { throw HermesError(.forbidden, "you may not send to this group yet") }
        }
        var recipients = [sender]
        recipients.reserveCapacity(members.count)
        for member in members where member.user != sender { recipients.append(member.user) }
        return recipients
    }

    /// Applies a command to this group.
    ///
    /// - Parameter lastSeq: the last conversation seq of the group's messages.
    /// - Throws: `.forbidden` (the user is not a member, or the user's role does not allow the command), `.notFound` (a
    ///   named account is not a member), `.tooLarge`, `.invalidArgument`. If an error is thrown, nothing is changed.
    package func applying(
        _ command: GroupCommand,
        by user: UserID,
        lastSeq: UInt64
    ) throws(HermesError) -> Outcome {
        switch command {
        case .create:
            throw HermesError(.invalidArgument, "this group already exists")
        case .change(_, let change):
            return try changed(change, by: user)
        case .changeMembers(_, let changes):
            return try changed(changes, by: user, lastSeq)
        case .leave:
            return try left(by: user)
        case .dissolve:
            try check(user, is: .owner)
            return dissolved(by: user)
        }
    }

    // MARK: Commands

    private func changed(_ change: GroupChange, by user: UserID) throws(HermesError) -> Outcome {
        try check(user, is: .administrator)
        var group = self
        group.changeSummary { summary in
            summary.name = change.name ?? summary.name
            summary.avatarURL = change.avatarURL ?? summary.avatarURL
            summary.isMuted = change.isMuted ?? summary.isMuted
            summary.isHistoryOpen = change.isHistoryOpen ?? summary.isHistoryOpen
        }
        return outcome(group, group == self ? [] : [(.changed, [], [])], by: user)
    }

    private func changed(
        _ changes: MemberChanges,
        by user: UserID,
        _ lastSeq: UInt64
    ) throws(HermesError) -> Outcome {
        let actor = try check(user, is: .administrator)
        var group = self
        var events: [(GroupEvent.Kind, users: [UserID], alsoTold: [UserID])] = []

        let removed = Set(changes.removed).filter { member($0) != nil }.sorted()
        for user in removed {
            guard user != actor.user else { throw HermesError(.invalidArgument, "leave the group instead") }
            try group.check(actor, isAbove: user)
            group.remove(user)
        }
        if !removed.isEmpty { events.append((.membersRemoved, removed, removed)) }

        let added = Set(changes.added).filter { group.member($0) == nil }.sorted()
        guard Set(added).isDisjoint(with: removed) else {
            throw HermesError(.invalidArgument, "the same account cannot be added and removed at once")
        }
        for user in added { group.set(GroupMember(user: user, joinedAfter: lastSeq)) }
        try Self.checkSize(group.members.count)
        if !added.isEmpty { events.append((.membersAdded, added, [])) }

        let before = group
        for change in changes.roles { try group.apply(change, by: actor) }
        if group != before { events.append((.changed, [], [])) }
        return outcome(group, events, by: user)
    }

    private mutating func apply(_ change: MemberChanges.Role, by actor: GroupMember) throws(HermesError) {
        guard var member = member(change.user) else {
            throw HermesError(.notFound, "account \(change.user) is not in this group")
        }
        let role = change.role ?? member.role
        guard role != member.role || change.mutedUntil != member.mutedUntil else { return }
        // The actor's current role counts: an owner who transferred the group in the same request is no longer the
        // owner.
        let actor = try check(actor.user, is: .administrator)
        if member.user == actor.user {
            throw HermesError(.invalidArgument, "you cannot change your own role; make another member the owner")
        }
        try check(actor, isAbove: member.user)
        if role != member.role {
            try check(actor.user, is: .owner)
            // A group has one owner, so the old owner becomes an administrator.
            if role == .owner {
                var former = actor
                former.role = .administrator
                former.mutedUntil = Timestamp(rawValue: 0)
                set(former)
            }
        }
        member.role = role
        member.mutedUntil = change.mutedUntil
        set(member)
    }

    private func left(by user: UserID) throws(HermesError) -> Outcome {
        let member = try check(user, is: .member)
        if member.role == .owner {
            guard members.count == 1 else {
                throw HermesError(.forbidden, "make another member the owner first, or dissolve the group")
            }
            return dissolved(by: user)
        }
        var group = self
        group.remove(user)
        return outcome(group, [(.membersRemoved, [user], [user])], by: user)
    }

    /// Removes a member whose account is deleted. If that member is the owner, the administrator with the lowest id
    /// becomes the owner. If there are no administrators, the member with the lowest id becomes the owner. If there are
    /// no other members, the group is dissolved.
    package func abandoned(by user: UserID) -> Outcome {
        var group = self
        group.remove(user)
        guard member(user)?.role == .owner else { return outcome(group, [(.membersRemoved, [user], [])], by: user) }
        guard var heir = group.members.first(where: { $0.role == .administrator }) ?? group.members.first else {
            return Outcome(group: group, isDissolved: true, notices: [])
        }
        heir.role = .owner
        group.set(heir)
        return outcome(group, [(.membersRemoved, [user], []), (.changed, [], [])], by: user)
    }

    private func dissolved(by user: UserID) -> Outcome {
        let empty = Group(summary, members: [])
        let event = GroupEvent(kind: .dissolved, group: empty.summary, by: user)
        return Outcome(group: empty, isDissolved: true, notices: [Notice(event: event, recipients: users)])
    }

    private func outcome(
        _ group: Group,
        _ events: [(kind: GroupEvent.Kind, users: [UserID], alsoTold: [UserID])],
        by user: UserID
    ) -> Outcome {
        let notices = events.map { event in
            Notice(
                event: GroupEvent(kind: event.kind, group: group.summary, by: user, users: event.users),
                recipients: group.users + event.alsoTold
            )
        }
        return Outcome(group: group, isDissolved: false, notices: notices)
    }

    // MARK: Checks

    /// Throws an error if the user has neither this role nor a higher role.
    @discardableResult
    private func check(_ user: UserID, is role: GroupRole) throws(HermesError) -> GroupMember {
        guard let member = member(user) else { throw Self.notAMember }
        guard member.role >= role else {
            throw HermesError(
                .forbidden,
                role == .owner ? "only the owner may do this" : "only administrators may do this"
            )
        }
        return member
    }

    private func check(_ actor: GroupMember, isAbove user: UserID) throws(HermesError) {
        guard let member = member(user), member.role >= actor.role else { return }
        throw HermesError(.forbidden, "account \(user) has the same role as you or a higher one")
    }

    private static func checkSize(_ count: Int) throws(HermesError) {
        guard count > maxMembers else { return }
        throw HermesError(.tooLarge, "a group has at most \(maxMembers) members")
    }

    /// The error for outsiders. A group that does not exist causes the same error, so that outsiders learn nothing.
    package static let notAMember = HermesError(.forbidden, "you are not a member of this group")
}
