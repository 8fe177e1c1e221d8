// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

extension BatchWriter {
    mutating func appendEvent(_ event: InboxEvent, to recipients: [UserID]) throws -> WriteOutcome {
        // Pushes have their own operation.
        if case .push = event { return .refused(StoreRefusals.notAnEvent) }
        guard let (kind, payload) = event.stored else { return .refused(StoreRefusals.notAnEvent) }
        if let refusal = try refusal(of: recipients) { return .refused(refusal) }
        let statement = statements.insertEvent
        var deliveries: [InboxDelivery] = []
        deliveries.reserveCapacity(recipients.count)
        let weight = InboxBudget.weight(ofContent: event.bytes)
        for user in recipients {
            let seq = advanceInbox(of: user)
            guard try hasReserve(in: user, by: event.actor, weight) else { continue }
            statement.bind(user, at: 1)
            statement.bind(seq, at: 2)
            statement.bind(kind, at: 3)
            statement.bind(now, at: 4)
            statement.bind(now.advanced(by: settings.eventPeriod), at: 5)
            statement.bind(Int64(weight), at: 7)
            try statement.bind(payload, at: 6) { try statement.run() }
            count(weight, from: .server, in: user)
            let entry = InboxEntry(seq: seq, committedAt: now, event: event)
            deliveries.append(InboxDelivery(user: user, entry: entry))
        }
        return .eventAppended(deliveries)
    }

    mutating func markRead(
        _ conversation: ConversationID,
        by reader: UserID,
        upTo seq: UInt64
    ) throws -> WriteOutcome {
        guard try loadInbox(of: reader) else { return .refused(StoreRefusals.noSuchAccount) }
        let peer = try conversation.reader(reader)
        guard try isMember(reader, of: conversation) else { return .refused(Group.notAMember) }
        guard let known = try knownConversation(conversation) else { return .eventAppended([]) }
        let mark = min(seq, known.lastSeq)
        // The mark is stored only if it is ahead of the last one. One statement checks and stores it.
        statements.moveReadMark.bind(reader, at: 1)
        statements.moveReadMark.bind(known.key, at: 2)
        statements.moveReadMark.bind(mark, at: 3)
        guard try statements.moveReadMark.first({ _ in true }) == true else { return .eventAppended([]) }
        var recipients = [reader]
        if let peer, try loadInbox(of: peer), try !blocks(peer, reader), try !blocks(reader, peer) {
            recipients.append(peer)
        }
        return try appendEvent(.readMark(ReadMark(conversation, by: reader, upTo: mark)), to: recipients)
    }

    mutating func acknowledge(
        _ user: UserID,
        _ device: DeviceID,
        upTo seq: UInt64,
        isProven: Bool
    ) throws -> WriteOutcome {
        guard try loadInbox(of: user) else { return .refused(StoreRefusals.noSuchDevice) }
        try loadCursors(of: user)
        guard let known = cache.cursors[user]?[device], let index = cache.inboxes.index(forKey: user) else {
            return .refused(StoreRefusals.noSuchDevice)
        }
        let moved = min(seq, cache.inboxes.values[index].head)
        guard moved > known.seq, isProven || known.proof == .claim else { return .acknowledged(known.seq) }
        cache.cursors[user]?.move(device, to: moved)
        dirtyCursors.insert(DeviceKey(user: user, device: device))
        release(index)
        return .acknowledged(moved)
    }

    /// Updates the seq up to which entries are released, after a cursor has moved or was added.
    mutating func release(_ index: Dictionary<UserID, WriterCache.Inbox>.Index) {
        let isCrowded = settings.inbox.isCrowded(cache.inboxes.values[index].use)
        let released = cache.cursors[cache.inboxes.keys[index]]?.released(isCrowded: isCrowded) ?? 0
        cache.inboxes.values[index].acknowledged = released
        markDirty(index)
    }

    mutating func loadCursors(of user: UserID) throws {
        if cache.cursors[user] == nil { cache.cursors[user] = try readCursors(of: user) }
    }

    private func readCursors(of user: UserID) throws -> InboxCursors {
        var cursors = InboxCursors()
        statements.selectCursors.bind(user, at: 1)
        try statements.selectCursors.forEachRow { row in
            guard let device = row.text(0).flatMap({ DeviceID($0) }) else { throw StoreFailure.damagedRow }
            cursors[device] = InboxCursors.Cursor(seq: try row.sequence(1), proof: DeviceReader.proof(row.integer(2)))
        }
        return cursors
    }

    mutating func recall(
        _ id: MessageID,
        in conversation: ConversationID,
        by user: UserID,
        notBefore: Timestamp
    ) throws -> WriteOutcome {
        guard let message = try recallable(id, in: conversation) else { return .refused(StoreRefusals.noSuchMessage) }
        guard try isMember(user, of: conversation) else { return .refused(Group.notAMember) }
        guard message.sender == user else { return .refused(StoreRefusals.notTheSender) }
        guard message.sentAt >= notBefore else { return .refused(StoreRefusals.tooLate) }
        guard !message.isRecalled else { return .eventAppended([]) }
        let update = try PreparedStatement(
            db,
            """
            UPDATE message SET is_recalled = 1, content_hash = ?, content = iif(content IS NULL, NULL, x'') WHERE key = ?
            """
        )
        update.bind(message.contentHash, at: 1)
        update.bind(message.key, at: 2)
        try update.run()
        if try knownConversation(conversation) != nil {
            change(conversation) { $0.recall(message.conversationSeq) }
        }
        let event = InboxEvent.recalled(
            RecalledMessage(id, in: conversation, conversationSeq: message.conversationSeq, by: user)
        )
        // Accounts may have been deleted meanwhile.
        let recipients = try message.recipients.filter { try loadInbox(of: $0) }
        return recipients.isEmpty ? .eventAppended([]) : try appendEvent(event, to: recipients)
    }

    private struct Recallable {
        let key: Int64
        let sender: UserID
        let sentAt: Timestamp
        let isRecalled: Bool
        let conversationSeq: UInt64
        let recipients: [UserID]
        let contentHash: Int64
    }

    private func recallable(_ id: MessageID, in conversation: ConversationID) throws -> Recallable? {
        let query = try PreparedStatement(
            db,
            """
            SELECT m.key, m.sender, m.sent_at, m.is_recalled, m.conversation_seq, m.deliveries, m.content, m.content_hash \
            FROM message m JOIN conversation c ON c.id = m.conversation \
            WHERE m.key BETWEEN ?1 AND ?2 AND m.key - m.shift = ?1 AND m.id_low = ?3 AND c.kind = ?4 AND c.a = ?5 \
            AND c.b = ?6
            """
        )
        let columns = ConversationColumns(conversation)
        query.bind(MessageKey.candidates(id).lowerBound, at: 1)
        query.bind(MessageKey.candidates(id).upperBound, at: 2)
        query.bind(id.low, at: 3)
        query.bind(columns.kind, at: 4)
        query.bind(columns.a, at: 5)
        query.bind(columns.b, at: 6)
        return try query.first { row in
            Recallable(
                key: row.integer(0),
                sender: try row.user(1),
                sentAt: row.timestamp(2),
                isRecalled: row.integer(3) != 0,
                conversationSeq: try row.sequence(4),
                recipients: try DeliveryList.decode(row.bytes(5)).map(\.user),
                contentHash: row.isNull(7) ? MessageContent(bytes: row.bytes(6)).stableHash : row.integer(7)
            )
        }
    }
}
