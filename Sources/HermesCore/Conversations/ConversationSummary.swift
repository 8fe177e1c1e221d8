// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The place of a conversation in an account's list. The other account or the group determines the place. Accounts come
/// before groups, and both are in the order of their numbers.
package enum ConversationPlace: Sendable, Hashable, Comparable {
    case user(UserID)
    case group(GroupID)

    /// Creates the place of a conversation in the list of `user`; nil for an outsider of a 1:1 conversation.
    package init?(_ conversation: ConversationID, of user: UserID) {
        switch conversation {
        case .direct:
            guard let peer = conversation.peer(of: user) else { return nil }
            self = .user(peer)
        case .group(let group): self = .group(group)
        }
    }

    /// Reads a place from the form of ``text``.
    ///
    /// - Returns: nil for any other text.
    package init?(text: some StringProtocol) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].utf8.first != UInt8(ascii: "+"), let number = Int32(parts[1]) else {
            return nil
        }
        switch parts[0] {
        case "user":
            guard let user = UserID(rawValue: number) else { return nil }
            self = .user(user)
        case "group":
            guard let group = GroupID(rawValue: number) else { return nil }
            self = .group(group)
        default: return nil
        }
    }

    /// The place as text, for example `user:7` or `group:9`.
    package var text: String {
        switch self {
        case .user(let user): "user:\(user.rawValue)"
        case .group(let group): "group:\(group.rawValue)"
        }
    }

    package static func < (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.user(let left), .user(let right)): left < right
        case (.group(let left), .group(let right)): left.rawValue < right.rawValue
        case (.user, .group): true
        case (.group, .user): false
        }
    }
}

/// A conversation as one of its participants sees it in a list.
package struct ConversationSummary: Sendable, Hashable {
    package let place: ConversationPlace
    /// The current name of the other account or the group; empty if the account is deleted.
    package let name: String
    /// The conversation seq of the last message; 0 in a group without messages.
    package let lastSeq: UInt64
    /// The time at which the last message was sent; nil if there is no message, or if an old version of the server,
    /// which did not store this time, committed the message.
    package let lastAt: Timestamp?
    /// The conversation seq up to which the participant has read.
    package let readUpTo: UInt64
    /// The number of messages of other accounts after ``readUpTo`` that were not recalled. In a group, this includes
    /// only messages that were sent after the participant joined.
    ///
    /// The number is exact if ``readUpTo`` is among the last ``RecentSeqs/window`` messages. Otherwise, messages before
    /// that window also count if they are the participant's own or were recalled.
    package let unread: UInt64

    package init(
        place: ConversationPlace,
        name: String,
        lastSeq: UInt64,
        lastAt: Timestamp?,
        readUpTo: UInt64,
        unread: UInt64
    ) {
        self.place = place
        self.name = name
        self.lastSeq = lastSeq
        self.lastAt = lastAt
        self.readUpTo = readUpTo
        self.unread = unread
    }
}

/// A page of an account's conversations.
package struct ConversationPage: Sendable, Hashable {
    package let conversations: [ConversationSummary]
    /// The place after which the next page begins; nil if this is the last page.
    package let next: ConversationPlace?

    package init(conversations: [ConversationSummary], next: ConversationPlace?) {
        self.conversations = conversations
        self.next = next
    }
}
