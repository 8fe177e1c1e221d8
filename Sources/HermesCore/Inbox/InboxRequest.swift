// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A request of an account about its inbox or its conversations. The requests of every protocol are translated to this
/// type. ``InboxRequests`` answers them by the same rules for all protocols.
///
/// A `limit` of 0 asks for the usual number of entries. A limit above the maximum counts as the maximum
/// (``PageLimit``).
package enum InboxRequest: Sendable, Hashable {
    /// The entries after a seq, whether or not they were already delivered. Clients use this request to pull or to
    /// synchronize.
    case page(after: UInt64, limit: Int)
    /// The newest stored messages of a conversation. If `before` is set, the page contains only messages with lower
    /// conversation seqs.
    case history(ConversationID, before: UInt64?, limit: Int)
    /// The account's conversations after a place. If the place is nil, the page begins with the first conversation.
    case conversations(after: ConversationPlace?, limit: Int)
    /// Marks the messages of a conversation up to a conversation seq as read.
    case markRead(ConversationID, upTo: UInt64)
    /// Recalls one of the account's own messages.
    case recall(MessageID, in: ConversationID)
}

/// The number of entries that a request gets.
package struct PageLimit: Sendable, Hashable {
    /// The limit for a page of the inbox.
    package static let inbox = PageLimit(usual: 200, most: 1_000)
    /// The limit for a page of history. This limit is lower, because messages are larger than most entries.
    package static let history = PageLimit(usual: 50, most: 500)
    /// The limit for a page of the list of conversations.
    package static let conversations = PageLimit(usual: 100, most: 1_000)

    /// The number of entries for a request without a limit.
    package let usual: Int
    package let most: Int

    /// Returns the number of entries for a request with this limit. The limit 0 means that the request sets no limit.
    package func applied(to limit: Int) -> Int { limit <= 0 ? usual : min(limit, most) }
}

/// The answer to an ``InboxRequest``.
package enum InboxAnswer: Sendable, Hashable {
    case page(InboxPage)
    case history(HistoryPage)
    case conversations(ConversationPage)
    /// The change is committed.
    case done
}

/// A page of a conversation's stored messages.
package struct HistoryPage: Sendable, Hashable {
    /// The messages, in ascending order of their conversation seqs.
    package let messages: [Message]
    /// Whether there are messages that are older than the first message of this page. A page without messages is the
    /// last page.
    package let hasMore: Bool

    package init(messages: [Message], hasMore: Bool) {
        self.messages = messages
        self.hasMore = hasMore
    }
}

/// An answer, and its cost for the account that asked.
package struct InboxReply: Sendable, Hashable {
    package let answer: InboxAnswer
    /// The amount that was read from the store, even if the answer contains less; nil if nothing was read.
    package let cost: ReadCost?
    /// The reach of a change; ``ChangeReach/nobody`` for a request that changes nothing.
    package let reach: ChangeReach

    package init(answer: InboxAnswer, cost: ReadCost?, reach: ChangeReach = .nobody) {
        self.answer = answer
        self.cost = cost
        self.reach = reach
    }
}

/// The entries and devices that a change reaches. They count towards the rate limits of the account that caused the
/// change, like the recipients of a message that the account sends.
package struct ChangeReach: Sendable, Hashable {
    package static let nobody = ChangeReach(entries: 0, devices: 0)

    /// The number of inbox entries that the change caused, including those of the acting account.
    package let entries: Int
    /// The number of connected devices that are notified of the entries. A device counts once for each entry.
    package let devices: Int

    package init(entries: Int, devices: Int) {
        self.entries = entries
        self.devices = devices
    }
}

/// The amount that was read from the store.
package struct ReadCost: Sendable, Hashable {
    /// The number of left-out messages that cost as much as one entry. When a page of history leaves out a message, the
    /// server looks at the message, but does not read its content.
    static let passedPerEntry = 16

    /// The number of entries, messages or conversations.
    package let entries: Int
    /// The size of the contents of the entries or messages, in bytes; 0 for conversations.
    package let bytes: Int
}
