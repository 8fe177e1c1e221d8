// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Sends, acknowledges and reads messages. Safe to call from anywhere.
///
/// The hot calls take a completion instead of being `async`: thousands of them are grouped into one commit and
/// completed together, without a task each. Completions run on the committer's thread and must not block; a gateway
/// posts the result to its loop's mailbox. Operations of one caller are committed and completed in the order of
/// its calls.
package final class MessageService: Sendable {
    /// Validates the draft, commits it and delivers it to all attached devices of all recipients.
    ///
    /// - Parameter completion: called exactly once. Success means committed. Errors: `.invalidArgument`, `.notFound`,
    ///   `.forbidden`, `.clientIDConflict`, `.tooLarge`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func send(
        _ draft: MessageDraft,
        from sender: Principal,
        completion: @escaping @Sendable (Result<SendReceipt, HermesError>) -> Void
    ) {}

    /// Moves the device's cursor. Lazily and coalesced: losing one costs a repetition, never a loss.
    package func acknowledge(_ principal: Principal, upTo seq: UInt64) {}

    /// Reads a page of the inbox. `completion` runs off the event loops.
    package func entries(
        of user: UserID,
        after seq: UInt64,
        limit: Int,
        completion: @escaping @Sendable (Result<InboxPage, HermesError>) -> Void
    ) {}

    /// Marks messages as read, for the peer and for the reader's own other devices.
    package func markRead(
        _ conversation: ConversationID,
        upTo seq: UInt64,
        by reader: Principal,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {}

    /// Takes back a message of one's own.
    package func recall(
        _ id: MessageID,
        in conversation: ConversationID,
        by sender: Principal,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {}

    /// Reads stored messages of a conversation that `reader` takes part in.
    package func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int,
        reader: Principal
    ) async throws(HermesError) -> [Message] { [] }

    init() {}
}
