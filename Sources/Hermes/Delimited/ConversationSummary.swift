// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A conversation of the account and what is unread in it, as an app lists it. The content is in the history, if the
/// server keeps one: ``HermesClient/history(of:beforeSeq:limit:)`` with a limit of 1 gives the last message.
///
/// The summary shows the state at the server's answer. To keep it up to date, an app reads the entries of the inbox:
///
/// - A message from somebody else with a ``Message/conversationSeq`` above ``lastSeq`` adds one to the unread messages.
///   Any other message is already counted, even if its entry comes later than the answer.
/// - A read mark of the account itself, from any of its devices, leaves nothing unread if it reaches ``lastSeq``. After
///   a read mark that ends before ``lastSeq``, and after a recall, the app asks for the list again.
public struct ConversationSummary: Hashable, Sendable {
    /// The conversation, named by the other user or the group.
    public var conversation: Conversation
    /// The current name of the other account or of the group; it may differ from the name in the messages. Empty if the
    /// account is deleted.
    public var name: String
    /// The conversation seq of the last message; 0 in a group without messages. Pass it to
    /// ``HermesClient/markRead(_:upToSeq:)`` to mark everything as read.
    public var lastSeq: UInt64
    /// When the last message was sent, by the server's clock; nil if there is none, or if the server does not know.
    public var lastDate: Date?
    /// The account has read up to this conversation seq, on any of its devices.
    package var readUpToSeq: UInt64
    /// The messages of others that the account has not marked as read on any device, and that were not recalled; of a
    /// group those since the account joined.
    ///
    /// The number is exact if the last mark is among the last 64 messages. Among earlier messages, those of the account
    /// itself and recalled ones count, too.
    public var unread: Int
}

// MARK: - Conversations
extension HermesClient {
    /// Fetches a page of the account's conversations: first those with accounts, by uid, then the groups, by id.
    ///
    /// A new device gets only entries that come after its login. This list shows the conversations from before:
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
    /// A page may be shorter than the limit, because it has to fit into a frame. Conversations with accounts are those
    /// in which somebody has written; groups are all that the account is a member of. The list does not depend on
    /// whether the server keeps a history. Messages to a group from before the account joined are not counted.
    ///
    /// - Parameters:
    ///   - conversation: the last one of the page before; nil: from the first.
    ///   - limit: 1 to 1,000.
    /// - Returns: the conversations after `conversation`; none if it was the last one.
    /// - Throws: HermesClientError `.invalidArgument` if there can be no such conversation; `.overloaded` if too many
    ///   read at the moment; `.timedOut`; CancellationError.
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
    /// Reads an answer's conversation. The server's numbers may be any; what no `Int` holds is the most that it holds.
    init(_ summary: Hermes_V1_ConversationSummary) {
        conversation = Conversation(summary.conversation)
        name = summary.name
        lastSeq = summary.lastSeq
        lastDate = Date(knownMilliseconds: summary.lastMessageAtMs)
        readUpToSeq = summary.readSeq
        unread = Int(clamping: summary.unread)
    }
}
