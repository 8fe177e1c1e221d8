// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension MessageStore {
    /// Reads the messages of a conversation before `seq`, or up to the newest message if `seq` is nil, as one call of
    /// `history(_:)` does.
    package func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int
    ) async throws(HermesError) -> [Message] {
        try await history(HistoryQuery(of: conversation, before: seq, limit: limit)).messages
    }
}
