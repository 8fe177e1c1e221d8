// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// The rows of conversations.
extension BatchWriter {
    /// - Returns: nil if the conversation has no messages.
    mutating func knownConversation(_ id: ConversationID) throws -> WriterCache.Conversation? {
        if let known = cache.conversations[id] { return known }
        let columns = ConversationColumns(id)
        let statement = statements.selectConversation
        statement.bind(columns.kind, at: 1)
        statement.bind(columns.a, at: 2)
        statement.bind(columns.b, at: 3)
        let found = try statement.first(Self.conversation)
        if let found { cache.conversations[id] = found }
        return found
    }

    mutating func loadConversation(_ id: ConversationID) throws -> WriterCache.Conversation {
        if let known = cache.conversations[id] { return known }
        let columns = ConversationColumns(id)
        for statement in [statements.selectConversation, statements.insertConversation] {
            statement.bind(columns.kind, at: 1)
            statement.bind(columns.a, at: 2)
            statement.bind(columns.b, at: 3)
            if let found = try statement.first(Self.conversation) {
                cache.conversations[id] = found
                return found
            }
        }
        throw StoreFailure.damagedRow
    }

    private static func conversation(_ row: PreparedStatement) throws -> WriterCache.Conversation {
        let lastSeq = try row.sequence(1)
        return WriterCache.Conversation(
            key: row.integer(0),
            lastSeq: lastSeq,
            lastAt: row.isNull(2) ? nil : row.timestamp(2),
            quietLow: RecentSeqs(newest: lastSeq, bits: row.unsigned(3)),
            quietHigh: RecentSeqs(newest: lastSeq, bits: row.unsigned(4))
        )
    }

    /// Changes a loaded conversation. The change is written with the batch.
    mutating func change(_ id: ConversationID, _ body: (inout WriterCache.Conversation) -> Void) {
        guard let index = cache.conversations.index(forKey: id) else { return }
        body(&cache.conversations.values[index])
        if !cache.conversations.values[index].isDirty {
            cache.conversations.values[index].isDirty = true
            dirtyConversations.append(id)
        }
    }
}
