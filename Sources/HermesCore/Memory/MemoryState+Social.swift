// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Contacts and groups.
extension MemoryState {
    // MARK: Permission

    /// Returns the accounts whose inboxes get the message.
    func recipients(of append: MessageAppend, now: Timestamp) throws(HermesError) -> [UserID] {
        let sender = append.sender.user
        switch append.draft.conversation {
        case .group(let id):
            guard let group = groups[id] else { throw Group.notAMember }
            return try group.recipients(ofMessageFrom: sender, now: now)
        case .direct:
            for user in append.recipients where user != sender {
                let pair = pair(sender, user)
                guard !pair.other.blocks else { throw ContactPair.blockedByOther }
                guard !append.requiresContact || pair.state == .accepted else { throw ContactPair.notAContact }
            }
            return append.recipients
        }
    }

    func checkMembership(of user: UserID, in conversation: ConversationID) throws(HermesError) {
        guard case .group(let id) = conversation else { return }
        guard groups[id]?.member(user) != nil else { throw Group.notAMember }
    }

    // MARK: Contacts

    func pair(_ user: UserID, _ peer: UserID) -> ContactPair {
        ContactPair(own: contacts[user]?[peer] ?? ContactRow(), other: contacts[peer]?[user] ?? ContactRow())
    }

    mutating func apply(
        _ command: ContactCommand,
        by principal: Principal,
        to peer: UserID,
        message: String,
        now: Timestamp
    ) throws(HermesError) -> WriteOutcome {
        let user = principal.user
        guard records[user] != nil, records[peer] != nil else { throw StoreRefusals.noSuchAccount }
        guard user != peer else { throw StoreRefusals.ownContact }
        var pair = pair(user, peer)
        let kind = try pair.apply(command)
        if kind == .requested, !hasReserve(peer, by: user, InboxBudget.entryBytes) { throw InboxBudget.isFull }
        contacts[user, default: [:]][peer] = pair.own
        contacts[peer, default: [:]][user] = pair.other
        guard let kind else { return .eventAppended([]) }
        let event = ContactEvent(kind: kind, user: user, nickName: principal.nickName.rawValue, message: message)
        return .eventAppended(try appendEvent(.contact(event), to: [peer], now: now))
    }

    func contacts(of user: UserID, after: UserID?, limit: Int) -> [Contact] {
        let peers = (contacts[user] ?? [:]).keys.filter { peer in after.map { peer > $0 } ?? true }.sorted()
        var found: [Contact] = []
        for peer in peers {
            guard found.count < StoreSettings.pageLimit(limit) else { break }
            guard let state = pair(user, peer).state, let account = records[peer]?.stored.account else { continue }
            found.append(Contact(account: account, state: state))
        }
        return found
    }

    func blockers(of user: UserID, among users: [UserID]) -> Set<UserID> {
        Set(users.filter { contacts[$0]?[user]?.blocks == true })
    }

    // MARK: Groups

    mutating func apply(
        _ command: GroupCommand,
        by user: UserID,
        requiresContacts: Bool,
        now: Timestamp
    ) throws(HermesError) -> WriteOutcome {
        guard records[user] != nil else { throw StoreRefusals.noSuchAccount }
        for added in command.added where added != user {
            guard records[added] != nil else { throw StoreRefusals.noSuchAccount }
            let pair = pair(user, added)
            guard !pair.other.blocks else { throw ContactPair.blockedByOther }
            guard !requiresContacts || pair.state == .accepted else { throw ContactPair.notAContact }
        }
        let joining = command.group == nil ? command.added + [user] : command.added
        for member in joining {
            if let id = command.group, groups[id]?.member(member) != nil { continue }
            let caller: GroupCaller = member == user ? .itself : isStranger(user, to: member) ? .stranger : .contact
            try settings.checkGroups(groups.values.count { $0.member(member) != nil }, addedBy: caller)
        }
        let outcome: Group.Outcome
        if let id = command.group {
            guard let group = groups[id] else { throw Group.notAMember }
            outcome = try group.applying(command, by: user, lastSeq: conversations[.group(id)]?.lastSeq ?? 0)
        } else {
            outcome = try create(command, by: user, now: now)
        }
        apply(outcome, before: command.group.flatMap { groups[$0] })
        var deliveries: [InboxDelivery] = []
        for notice in outcome.notices {
            deliveries += try appendEvent(.group(notice.event), to: notice.recipients, now: now)
        }
        return .groupChanged(outcome.group, deliveries: deliveries)
    }

    /// Stores a group after a change. The read marks of members who have left are forgotten.
    mutating func apply(_ outcome: Group.Outcome, before: Group?) {
        let group = outcome.group
        for member in before?.members ?? [] where group.member(member.user) == nil {
            readMarks[member.user]?[.group(group.id)] = nil
        }
        groups[group.id] = outcome.isDissolved ? nil : group
    }

    private mutating func create(
        _ command: GroupCommand,
        by user: UserID,
        now: Timestamp
    ) throws(HermesError) -> Group.Outcome {
        guard case .create(let name, let members) = command, lastGroup < .max,
            let id = GroupID(rawValue: lastGroup + 1)
        else { throw HermesError(.storageUnavailable, "All group numbers are used up.") }
        let outcome = try Group.created(id, name: name, members: members, by: user, now: now)
        lastGroup += 1
        return outcome
    }

    func groups(after: GroupID?, named key: String, limit: Int) -> (found: [GroupSummary], next: GroupID?) {
        let behind = groups.values.filter { $0.id.rawValue > after?.rawValue ?? 0 }.map(\.summary)
            .sorted { $0.id.rawValue < $1.id.rawValue }
        let named = behind.filter { key.isEmpty || Group.searchKey($0.name).utf8.contains(key.utf8) }
        let found = Array(named.prefix(StoreSettings.pageLimit(limit)))
        return (found, found.count < named.count ? found.last?.id : nil)
    }

    func groups(of user: UserID, after: GroupID?, limit: Int) -> [GroupSummary] {
        let found = groups.values.filter { $0.member(user) != nil && $0.id.rawValue > after?.rawValue ?? 0 }
            .map(\.summary)
        return Array(
            found.sorted { $0.id.rawValue < $1.id.rawValue }.prefix(StoreSettings.pageLimit(limit))
        )
    }
}
