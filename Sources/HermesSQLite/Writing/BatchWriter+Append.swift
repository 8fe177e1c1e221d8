// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

extension BatchWriter {
    mutating func append(_ append: MessageAppend) throws -> WriteOutcome {
        if let refusal = try refusal(of: append.recipients) { return .refused(refusal) }
        let draft = append.draft
        let sender = append.sender.user
        let conversation = try loadConversation(draft.conversation)
        let conversationSeq = conversation.lastSeq + 1

        deliveryBytes.removeAll(keepingCapacity: true)
        var senderSeq: UInt64 = 0
        for user in append.recipients {
            let seq = (cache.inboxes[user]?.head ?? 0) + 1
            if user == sender { senderSeq = seq }
            DeliveryList.append(user, seq, to: &deliveryBytes)
        }
        guard let key = try insert(append, conversation: conversation.key, seq: conversationSeq) else {
            return try repetition(of: append, conversation: conversation.key)
        }

        advance(draft.conversation)
        let message = Message(
            id: append.id,
            conversation: draft.conversation,
            conversationSeq: conversationSeq,
            sender: sender,
            senderName: append.sender.nickName.rawValue,
            senderDevice: append.sender.device,
            clientID: draft.clientID,
            content: draft.content,
            sentAt: append.sentAt,
            expiresAt: append.expiresAt
        )
        var deliveries: [InboxDelivery] = []
        deliveries.reserveCapacity(append.recipients.count)
        for user in append.recipients {
            let seq = advanceInbox(of: user)
            statements.insertEntry.bind(user, at: 1)
            statements.insertEntry.bind(seq, at: 2)
            statements.insertEntry.bind(key, at: 3)
            try statements.insertEntry.run()
            let entry = InboxEntry(seq: seq, committedAt: now, event: .message(message))
            deliveries.append(InboxDelivery(user: user, entry: entry))
        }
        let receipt = SendReceipt(
            messageID: append.id,
            clientID: draft.clientID,
            conversationSeq: conversationSeq,
            inboxSeq: senderSeq,
            sentAt: append.sentAt,
            isDuplicate: false
        )
        return .appended(receipt, deliveries: deliveries)
    }

    /// Inserts the message's row.
    ///
    /// The unique indexes check for repetitions on the way, so that the usual case costs no query of its own.
    /// - Returns: the row's key; nil if there is a row with the same id or client id.
    private func insert(_ append: MessageAppend, conversation: Int64, seq: UInt64) throws -> Int64? {
        let statement = statements.insertMessage
        statement.bind(nil, at: 1)
        statement.bind(append.id.high, at: 2)
        statement.bind(append.id.low, at: 3)
        statement.bind(conversation, at: 4)
        statement.bind(seq, at: 5)
        statement.bind(append.sender.user, at: 6)
        statement.bind(append.sentAt, at: 9)
        statement.bind(append.expiresAt, at: 10)
        statement.bind(now, at: 11)
        statement.bind(append.contentKept(by: settings), at: 12)
        statement.bind(Int64(append.recipients.count), at: 13)
        let isInserted = try statement.bind(append.sender.device.rawValue, at: 7) {
            try statement.bind(append.draft.clientID, at: 8) {
                try statement.bind(deliveryBytes, at: 14) {
                    try statement.bind(append.draft.content.bytes, at: 15) {
                        try statement.runUnlessConflict()
                    }
                }
            }
        }
        return isInserted ? db.lastInsertedRowID : nil
    }

    /// What became of a message whose row could not be inserted: its client id or its id is there already.
    private func repetition(of append: MessageAppend, conversation: Int64) throws -> WriteOutcome {
        let query = try PreparedStatement(
            db,
            """
            SELECT id_high, id_low, conversation, conversation_seq, sent_at, deliveries, content, content_hash \
            FROM message WHERE sender = ? AND client_id = ?
            """
        )
        query.bind(append.sender.user, at: 1)
        let outcome = try query.bind(append.draft.clientID, at: 2) {
            try query.first { row -> WriteOutcome in
                let isSameContent =
                    row.isNull(7)
                    ? row.bytes(6) == append.draft.content.bytes
                    : row.integer(7) == append.draft.content.stableHash
                guard row.integer(2) == conversation, isSameContent else { return .refused(Refusals.clientIDConflict) }
                let deliveries = try DeliveryList.decode(row.bytes(5))
                return .duplicate(
                    SendReceipt(
                        messageID: MessageID(high: row.unsigned(0), low: row.unsigned(1)),
                        clientID: append.draft.clientID,
                        conversationSeq: row.unsigned(3),
                        inboxSeq: deliveries.first { $0.user == append.sender.user }?.seq ?? 0,
                        sentAt: row.timestamp(4),
                        isDuplicate: true
                    )
                )
            }
        }
        return outcome ?? .refused(Refusals.messageIDTaken)
    }

    private mutating func loadConversation(_ id: ConversationID) throws -> WriterCache.Conversation {
        if let known = cache.conversations[id] { return known }
        let columns = ConversationColumns(id)
        let read: (PreparedStatement) -> WriterCache.Conversation = { row in
            WriterCache.Conversation(key: row.integer(0), lastSeq: row.unsigned(1))
        }
        for statement in [statements.selectConversation, statements.insertConversation] {
            statement.bind(columns.kind, at: 1)
            statement.bind(columns.a, at: 2)
            statement.bind(columns.b, at: 3)
            if let conversation = try statement.first(read) {
                cache.conversations[id] = conversation
                return conversation
            }
        }
        throw StoreFailure.damagedRow
    }

    private mutating func advance(_ id: ConversationID) {
        guard let index = cache.conversations.index(forKey: id) else { return }
        cache.conversations.values[index].lastSeq += 1
        if !cache.conversations.values[index].isDirty {
            cache.conversations.values[index].isDirty = true
            dirtyConversations.append(id)
        }
    }
}
