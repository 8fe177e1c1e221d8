// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An entry of the account's list of conversations, with the number of unread messages. The entry holds no content. If
/// the server keeps a history, ``HermesClient/history(of:beforeSeq:limit:)`` with a limit of 1 returns the last
/// message.
///
/// The summary shows the state at the moment of the server's answer. To keep the summary up to date, the app follows
/// the entries of the inbox:
///
/// - A message from somebody else adds one to the unread messages if its ``Message/conversationSeq`` is above
///   ``lastSeq``. Otherwise the summary has already counted the message, even if the message's inbox entry arrives
///   after the answer.
/// - If a read mark of the account itself, from any of its devices, reaches ``lastSeq``, nothing is unread. If the
///   mark is below ``lastSeq``, or if a message is recalled, the app fetches the list again.
public struct ConversationSummary: Hashable, Sendable {
    /// The conversation, identified by the other account or the group.
    public var conversation: Conversation
    /// The current name of the other account or of the group. Messages may hold an older name. The name is empty if
    /// the account is deleted.
    public var name: String
    /// The conversation seq of the last message; 0 in a group without messages. Pass it to
    /// ``HermesClient/markRead(_:upToSeq:)`` to mark everything as read.
    public var lastSeq: UInt64
    /// The time at which the last message was sent, by the server's clock; nil if there is no message, or if the time
    /// is unknown.
    public var lastDate: Date?
    /// The conversation seq up to which the account has read, on any of its devices.
    package var readUpToSeq: UInt64
    /// The number of unread messages. A message counts if another account sent it, if it was not recalled, and if this
    /// account has not marked it as read on any device. In a group, `unread` counts only messages that were sent after
    /// the account joined.
    ///
    /// The number is exact if the account's read mark is among the last 64 messages. Otherwise it can be too high:
    /// among the messages before the last 64, it also counts recalled messages and the account's own messages.
    public var unread: Int
}

// MARK: - Conversations
extension HermesClient {
    /// Fetches a page of the account's conversations: first the 1:1 conversations, sorted by uid, then the groups,
    /// sorted by id.
    ///
    /// The inbox of a new device begins with the entries that the server still keeps because another device of the
    /// account has not taken them. Older entries are not delivered again, so a new device needs this list to show the
    /// earlier conversations:
    ///
    /// ```swift
    /// var conversations: [ConversationSummary] = []
    /// while true {
    ///     let page = try await client.conversations(after: conversations.last?.conversation)
    ///     if page.isEmpty { break }
    ///     conversations += page
    /// }
    /// ```
    ///
    /// A page can be shorter than the limit, because it has to fit into a frame. The list holds the 1:1 conversations
    /// in which somebody has written, and all groups that the account is a member of. The list does not depend on
    /// whether the server keeps a history.
    ///
    /// - Parameters:
    ///   - conversation: the last conversation of the previous page; nil for the first page.
    ///   - limit: the largest number of conversations, 1 to 1,000.
    /// - Returns: the conversations after `conversation`; an empty array if there are none.
    /// - Throws: HermesClientError `.invalidArgument` if `conversation` has an invalid number; `.overloaded` if the
    ///   server has too many reads at the moment; `.timedOut`; CancellationError.
    public func conversations(
        after conversation: Conversation? = nil,
        limit: Int = 100
    ) async throws -> [ConversationSummary] {
        var request = Hermes_V1_ListConversations()
        if let conversation { request.after = conversation.wire }
        request.limit = UInt32(clamping: limit)
        let result = try await result(of: .conversations(request), replay: .always)
        guard case .conversations(let page) = result.value else { throw Self.unexpected("conversations") }
        return page.conversations.map { ConversationSummary($0) }
    }
}

extension ConversationSummary {
    /// Converts a summary from the server's answer. A count that is too large for an `Int` becomes the largest `Int`.
    init(_ summary: Hermes_V1_ConversationSummary) {
        conversation = Conversation(summary.conversation)
        name = summary.name
        lastSeq = summary.lastSeq
        lastDate = Date(knownMilliseconds: summary.lastMessageAtMs)
        readUpToSeq = summary.readSeq
        unread = Int(clamping: summary.unread)
    }
}
