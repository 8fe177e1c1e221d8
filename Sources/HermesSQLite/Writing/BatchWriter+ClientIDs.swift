// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Messages that are sent again, and messages whose keys are taken.
extension BatchWriter {
    /// Claims a client id for the message with this key.
    ///
    /// - Returns: the key of an earlier message with this client id; nil if the new message has claimed it.
    func claim(_ clientID: String, of sender: UserID, for key: Int64) throws -> Int64? {
        if let first = try settledClaim(clientID, of: sender) { return first }
        let insert = statements.insertClientID
        insert.bind(sender, at: 1)
        insert.bind(key, at: 3)
        if try insert.bind(clientID, at: 2, while: { try insert.runUnlessConflict() }) { return nil }
        return try freshClaim(clientID, of: sender)
    }

    /// Returns the key of the message with this client id; nil if there is none.
    func claimed(_ clientID: String, of sender: UserID) throws -> Int64? {
        try settledClaim(clientID, of: sender) ?? freshClaim(clientID, of: sender)
    }

    private func settledClaim(_ clientID: String, of sender: UserID) throws -> Int64? {
        let select = statements.selectClientID
        select.bind(sender, at: 1)
        return try select.bind(clientID, at: 2, while: { try select.first { $0.integer(0) } })
    }

    private func freshClaim(_ clientID: String, of sender: UserID) throws -> Int64? {
        let fresh = try PreparedStatement(db, "SELECT message FROM client_id_fresh WHERE sender = ? AND client_id = ?")
        fresh.bind(sender, at: 1)
        return try fresh.bind(clientID, at: 2) { try fresh.first { $0.integer(0) } }
    }

    /// Changes a claim to another key, or removes the claim if the key is nil.
    func changeClaim(of append: MessageAppend, to key: Int64?) throws {
        guard let clientID = append.draft.clientID else { return }
        let change = try PreparedStatement(
            db,
            key == nil
                ? "DELETE FROM client_id_fresh WHERE sender = ?1 AND client_id = ?2"
                : "UPDATE client_id_fresh SET message = ?3 WHERE sender = ?1 AND client_id = ?2"
        )
        change.bind(append.sender.user, at: 1)
        if key != nil { change.bind(key, at: 3) }
        try change.bind(clientID, at: 2) { try change.run() }
    }

    /// Finds a key for an id whose first key is taken, which is rare.
    ///
    /// - Returns: nil if a message with this id already exists, or if no key is left.
    func freeKey(for id: MessageID) throws -> Int64? {
        let candidates = MessageKey.candidates(id)
        let query = try PreparedStatement(db, "SELECT key, shift, id_low FROM message WHERE key BETWEEN ? AND ?")
        query.bind(candidates.lowerBound, at: 1)
        query.bind(candidates.upperBound, at: 2)
        var taken: Set<Int64> = []
        var isKnown = false
        try query.forEachRowWhile { row in
            taken.insert(row.integer(0))
            isKnown = MessageKey.id(key: row.integer(0), shift: row.integer(1), low: row.unsigned(2)) == id
            return !isKnown
        }
        return isKnown ? nil : candidates.first { !taken.contains($0) }
    }

    /// The outcome for a message whose client id is taken.
    func repetition(of append: MessageAppend, key: Int64) throws -> WriteOutcome {
        let query = try PreparedStatement(
            db,
            """
            SELECT m.shift, m.id_low, c.kind, c.a, c.b, m.conversation_seq, m.sent_at, m.deliveries, m.content, \
            m.content_hash FROM message m JOIN conversation c ON c.id = m.conversation WHERE m.key = ?
            """
        )
        query.bind(key, at: 1)
        let outcome = try query.first { row -> WriteOutcome in
            let columns = ConversationColumns(kind: row.integer(2), a: row.integer(3), b: row.integer(4))
            let isSameContent =
                row.isNull(9)
                ? row.bytes(8) == append.draft.content.bytes
                : row.integer(9) == append.draft.content.stableHash
            guard columns.conversation == append.draft.conversation, isSameContent else {
                return .refused(StoreRefusals.clientIDConflict)
            }
            let deliveries = try DeliveryList.decode(row.bytes(7))
            return .duplicate(
                SendReceipt(
                    messageID: MessageKey.id(key: key, shift: row.integer(0), low: row.unsigned(1)),
                    clientID: append.draft.clientID,
                    conversationSeq: try row.sequence(5),
                    inboxSeq: deliveries.first { $0.user == append.sender.user }?.seq ?? 0,
                    sentAt: row.timestamp(6),
                    isDuplicate: true
                )
            )
        }
        guard let outcome else { throw StoreFailure.damagedRow }
        return outcome
    }
}
