// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryState {
    mutating func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        let bytes = operations.reduce(0) { sum, operation in
            switch operation {
            case .append(let append): sum + append.draft.content.bytes.count
            case .push(let push): sum + push.weight
            case .markRead, .acknowledge, .recall, .contact, .group, .deleteAccount, .openDevice: sum
            }
        }
        try checkRoom(for: bytes)
        return operations.map { operation in
            do throws(HermesError) {
                switch operation {
                case .append(let append):
                    return try self.append(append, now: now)
                case .markRead(let conversation, let user, let seq):
                    return .eventAppended(try markRead(conversation, by: user, upTo: seq, now: now))
                case .acknowledge(let user, let device, let seq, let isProven):
                    return .acknowledged(try acknowledge(user, device, upTo: seq, isProven: isProven))
                case .recall(let id, let conversation, let user, let notBefore):
                    return .eventAppended(
                        try recall(id, in: conversation, by: user, notBefore: notBefore, now: now)
                    )
                case .contact(let command, let principal, let peer, let message):
                    return try apply(command, by: principal, to: peer, message: message, now: now)
                case .group(let command, let user, let requiresContacts):
                    return try apply(command, by: user, requiresContacts: requiresContacts, now: now)
                case .push(let operation):
                    return .pushed(try apply(operation, now: now))
                case .deleteAccount(let user):
                    return .deleted(try deleteAccount(user, now: now), isDone: true)
                case .openDevice(let opening):
                    return .deviceOpened(try open(opening, now: now))
                }
            } catch {
                return .refused(error)
            }
        }
    }

    private mutating func append(_ append: MessageAppend, now: Timestamp) throws(HermesError) -> WriteOutcome {
        let sender = append.sender.user
        let draft = append.draft
        // A repetition gets the first receipt, even if the recipient has blocked the sender meanwhile.
        if let clientID = draft.clientID,
            let first = clientIDs[ClientKey(sender: sender, clientID: clientID)].flatMap({ messages[$0] })
        {
            guard first.message.conversation == draft.conversation, first.contentHash == draft.content.hashValue else {
                throw StoreRefusals.clientIDConflict
            }
            return .duplicate(receipt(for: first, isDuplicate: true))
        }
        guard !append.mustBeRepetition else { throw StoreRefusals.notARepetition }
        let recipients = try recipients(of: append, now: now)
        try check(recipients)
        guard messages[append.id] == nil else {
            throw StoreRefusals.messageIDTaken
        }

        let source = EntrySource(append)
        let weight = InboxBudget.weight(ofContent: draft.content.bytes.count)
        let taking = try roomy(recipients, for: append, from: source, weight)

        let conversationSeq = (conversations[draft.conversation]?.lastSeq ?? 0) + 1
        let message = Message(append, conversationSeq: conversationSeq)
        var senderSeq: UInt64 = 0
        let deliveries = recipients.compactMap { user -> InboxDelivery? in
            let isTaken = taking.contains(user)
            let seq = isTaken ? add(.message(append.id), to: user, source, weight, now: now) : skip(of: user)
            if user == sender { senderSeq = seq }
            guard isTaken else { return nil }
            let entry = InboxEntry(seq: seq, committedAt: now, event: .message(message))
            return InboxDelivery(user: user, entry: entry, nodes: places.nodes(of: user))
        }
        var kept = message
        kept.content = message.content.unread
        let stored = StoredMessage(
            message: kept,
            contentHash: draft.content.hashValue,
            deliveries: deliveries.map { ($0.user, $0.entry.seq) },
            references: deliveries.count,
            contentKeptUntil: append.contentKept(by: settings),
            recordKeptUntil: append.sentAt.advanced(by: settings.recordPeriod)
        )
        messages[append.id] = stored
        usedBytes += draft.content.bytes.count
        conversations[draft.conversation, default: Conversation()].lastSeq = conversationSeq
        conversations[draft.conversation]?.lastAt = append.sentAt
        conversations[draft.conversation]?.messages[conversationSeq] = append.id
        conversations[draft.conversation]?.own[sender, default: RecentSeqs()].insert(conversationSeq)
        if let clientID = draft.clientID {
            clientIDs[ClientKey(sender: sender, clientID: clientID)] = append.id
        }
        return .appended(receipt(for: stored, isDuplicate: false, senderSeq: senderSeq), deliveries: deliveries)
    }

    func isStranger(_ sender: UserID, to owner: UserID) -> Bool {
        sender != owner && contacts[owner]?[sender]?.wants != true
    }

    /// Returns the recipients whose inboxes have room for a message.
    ///
    /// - Throws: `.inboxFull` if the message would reach no recipient except the sender; `.tooMuchUnread`.
    private func roomy(
        _ recipients: [UserID],
        for append: MessageAppend,
        from source: EntrySource,
        _ weight: Int
    ) throws(HermesError) -> Set<UserID> {
        let sender = append.sender.user
        let taking = Set(
            recipients.filter { user in
                let inbox = records[user]?.inbox ?? Inbox()
                if settings.inbox.isClosedToStrangers(inbox.use, adding: weight), isStranger(sender, to: user) {
                    return false
                }
                return settings.inbox.hasRoom(in: inbox.use, from: source, adding: weight) {
                    inbox.shares[$0] ?? Holding()
                }
            }
        )
        let left = recipients.count - taking.count
        guard !InboxBudget.reachesNobody(taking, of: recipients, from: sender) else {
            inboxes.apply(.refusal(1))
            throw InboxBudget.isFull
        }
        guard case .direct = append.draft.conversation else {
            inboxes.apply(.refusal(left))
            return taking
        }
        let peer = recipients.first { $0 != sender }
        let leavesOthers = peer.map { peer in
            InboxBudget.leavesOthers(weight, unread: unread[sender, default: 0], of: settings.maxUnreadBytes) {
                records[peer]?.inbox.shares[source]?.bytes ?? 0
            }
        }
        guard leavesOthers ?? true else {
            inboxes.apply(.unreadRefusal)
            throw InboxBudget.tooMuchUnread
        }
        inboxes.apply(.refusal(left))
        return taking
    }

    private func receipt(for stored: StoredMessage, isDuplicate: Bool, senderSeq: UInt64 = 0) -> SendReceipt {
        SendReceipt(
            messageID: stored.message.id,
            clientID: stored.message.clientID,
            conversationSeq: stored.message.conversationSeq,
            inboxSeq: stored.deliveries.first { $0.user == stored.message.sender }?.seq ?? senderSeq,
            sentAt: stored.message.sentAt,
            isDuplicate: isDuplicate
        )
    }

    mutating func appendEvent(
        _ event: InboxEvent,
        to recipients: [UserID],
        now: Timestamp
    ) throws(HermesError) -> [InboxDelivery] {
        switch event {
        // Pushes have an operation of their own.
        case .message, .expired, .push: throw StoreRefusals.notAnEvent
        default: break
        }
        try check(recipients)
        let expiresAt = now.advanced(by: settings.eventPeriod)
        let weight = InboxBudget.weight(ofContent: event.bytes)
        return recipients.compactMap { user -> InboxDelivery? in
            guard hasReserve(user, by: event.actor, weight) else {
                _ = skip(of: user)
                return nil
            }
            let seq = add(.event(event, expiresAt: expiresAt), to: user, .server, weight, now: now)
            let entry = InboxEntry(seq: seq, committedAt: now, event: event)
            return InboxDelivery(user: user, entry: entry, nodes: places.nodes(of: user))
        }
    }

    private mutating func markRead(
        _ conversation: ConversationID,
        by reader: UserID,
        upTo seq: UInt64,
        now: Timestamp
    ) throws(HermesError) -> [InboxDelivery] {
        guard records[reader] != nil else { throw StoreRefusals.noSuchAccount }
        let peer = try conversation.reader(reader)
        try checkMembership(of: reader, in: conversation)
        let mark = min(seq, conversations[conversation]?.lastSeq ?? 0)
        guard mark > readMarks[reader]?[conversation] ?? 0 else { return [] }
        readMarks[reader, default: [:]][conversation] = mark
        var recipients = [reader]
        if let peer, records[peer] != nil {
            let pair = pair(reader, peer)
            if !pair.own.blocks, !pair.other.blocks { recipients.append(peer) }
        }
        return try appendEvent(.readMark(ReadMark(conversation, by: reader, upTo: mark)), to: recipients, now: now)
    }

    private mutating func acknowledge(
        _ user: UserID,
        _ device: DeviceID,
        upTo seq: UInt64,
        isProven: Bool
    ) throws(HermesError) -> UInt64 {
        guard let record = records[user],
            let index = record.devices.firstIndex(where: { $0.description.id == device })
        else {
            throw StoreRefusals.noSuchDevice
        }
        let known = record.devices[index]
        let cursor = max(known.cursor, min(seq, record.inbox.head))
        guard cursor > known.cursor, isProven || known.proof == .claim else { return known.cursor }
        records[user]?.devices[index].cursor = cursor
        releaseEntries(of: user)
        return cursor
    }

    /// Updates the seq up to which no device waits for entries. Call this after a device's cursor has moved, or after a
    /// device was added.
    mutating func releaseEntries(of user: UserID) {
        guard let record = records[user] else { return }
        let isCrowded = settings.inbox.isCrowded(record.inbox.use)
        records[user]?.inbox.acknowledged = InboxCursors(record.devices).released(isCrowded: isCrowded)
    }

    private mutating func recall(
        _ id: MessageID,
        in conversation: ConversationID,
        by user: UserID,
        notBefore: Timestamp,
        now: Timestamp
    ) throws(HermesError) -> [InboxDelivery] {
        guard let stored = messages[id], stored.message.conversation == conversation else {
            throw StoreRefusals.noSuchMessage
        }
        try checkMembership(of: user, in: conversation)
        guard stored.message.sender == user else {
            throw StoreRefusals.notTheSender
        }
        guard stored.message.sentAt >= notBefore else {
            throw StoreRefusals.tooLate
        }
        guard !stored.message.isRecalled else { return [] }
        let event = InboxEvent.recalled(
            RecalledMessage(id, in: conversation, conversationSeq: stored.message.conversationSeq, by: user)
        )
        // Some of the accounts may have been deleted meanwhile.
        let recipients = stored.deliveries.map(\.user).filter { records[$0] != nil }
        let deliveries = recipients.isEmpty ? [] : try appendEvent(event, to: recipients, now: now)
        usedBytes -= stored.message.content.bytes.count
        messages[id]?.message.content = MessageContent(bytes: [])
        messages[id]?.message.isRecalled = true
        conversations[conversation]?.recalled.insert(stored.message.conversationSeq)
        return deliveries
    }

    private func check(_ recipients: [UserID]) throws(HermesError) {
        guard recipients.allSatisfy({ records[$0] != nil }) else { throw StoreRefusals.noSuchAccount }
        if let refusal = StoreRefusals.recipients(recipients) { throw refusal }
    }

    /// Whether the inbox has room for an entry that is not a message. If not, the entry counts as refused.
    ///
    /// - Parameter actor: the account that causes the entry; nil if a back end causes it.
    func hasReserve(_ user: UserID, by actor: UserID?, _ weight: Int) -> Bool {
        let use = records[user]?.inbox.use ?? Holding()
        var hasRoom = settings.inbox.hasReserve(in: use, adding: weight)
        if hasRoom, let actor, settings.inbox.isClosedToStrangers(use, adding: weight) {
            hasRoom = !isStranger(actor, to: user)
        }
        if !hasRoom { inboxes.apply(.refusal(1)) }
        return hasRoom
    }

    mutating func add(
        _ item: Item,
        to user: UserID,
        _ source: EntrySource,
        _ weight: Int,
        now: Timestamp
    ) -> UInt64 {
        let seq = skip(of: user)
        let entry = Entry(seq: seq, committedAt: now, item: item, source: source, bytes: weight)
        records[user]?.inbox.entries.append(entry)
        records[user]?.inbox.count(entry)
        var change = InboxLedger.Changes()
        change.came(weight, into: records[user]?.inbox.use ?? Holding())
        inboxes.apply(change)
        if case .user(let sender) = source, sender != user { unread[sender, default: 0] += weight }
        return seq
    }

    /// Leaves the next seq of the inbox without an entry, and returns that seq.
    mutating func skip(of user: UserID) -> UInt64 {
        let seq = (records[user]?.inbox.head ?? 0) + 1
        records[user]?.inbox.head = seq
        return seq
    }

    /// Subtracts an entry from the counts of its inbox and of its sender.
    mutating func uncount(_ entry: Entry, of user: UserID) {
        records[user]?.inbox.uncount(entry)
        var change = InboxLedger.Changes()
        change.went(entry.bytes)
        inboxes.apply(change)
        guard case .user(let sender) = entry.source, sender != user else { return }
        unread[sender, default: 0] -= entry.bytes
        if unread[sender] == 0 { unread[sender] = nil }
    }
}
