// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where an inbox entry comes from, for whom it counts.
package enum EntrySource: Hashable, Sendable {
    /// Contacts' and groups' notices, marks, pushes.
    case server
    /// A 1:1 message.
    case user(UserID)
    /// A message to a group.
    case group(GroupID)

    package init(_ message: MessageAppend) {
        self =
            switch message.draft.conversation {
            case .direct: .user(message.sender.user)
            case .group(let group): .group(group)
            }
    }

    /// As stores write it: users above 0, groups below.
    package var number: Int64 {
        switch self {
        case .server: 0
        case .user(let user): Int64(user.rawValue)
        case .group(let group): -Int64(group.rawValue)
        }
    }
}

/// Entries that nobody has taken yet, and what they hold.
package struct InboxUse: Hashable, Sendable {
    package var entries: Int
    /// Contents, and ``InboxBudget/entryBytes`` for each entry.
    package var bytes: Int

    package init(entries: Int = 0, bytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
    }

    package mutating func add(_ bytes: Int) {
        entries += 1
        self.bytes += bytes
    }

    package mutating func subtract(_ bytes: Int) {
        entries -= 1
        self.bytes -= bytes
    }
}

/// How much may wait in one inbox, and how much of it may come from one sender. The same for every store.
///
/// One sender, and one group, holds a quarter at most, so that none fills an inbox for everybody else. What is not a
/// message has a reserve of a quarter beyond. Where a message to a group, or the sender's own copy, finds no room, its place
/// in the inbox stays empty, which its devices are told as for an entry that expired.
package struct InboxBudget: Hashable, Sendable {
    /// What an entry takes beside its content, about.
    package static let entryBytes = 128

    package var maxEntries: Int
    package var maxBytes: Int

    package init(maxEntries: Int = 100_000, maxBytes: Int = 128 << 20) {
        self.maxEntries = max(4, maxEntries)
        self.maxBytes = max(4, maxBytes)
    }

    package static func weight(ofContent bytes: Int) -> Int { bytes + entryBytes }

    /// Whether one sender's share has to be looked at: while less than a quarter waits, nobody holds more.
    package func needsShare(_ inbox: InboxUse, adding bytes: Int) -> Bool {
        inbox.entries >= maxEntries / 4 || inbox.bytes + bytes > maxBytes / 4
    }

    /// Whether a message finds room.
    ///
    /// - Parameter share: what waits of its source; only looked at where ``needsShare(_:adding:)`` says so.
    package func hasRoom(in inbox: InboxUse, share: InboxUse, adding bytes: Int) -> Bool {
        guard needsShare(inbox, adding: bytes) else { return true }
        return inbox.entries < maxEntries && inbox.bytes + bytes <= maxBytes
            && share.entries < maxEntries / 4 && share.bytes + bytes <= maxBytes / 4
    }

    /// Whether something that is no message finds room.
    package func hasReserve(in inbox: InboxUse, adding bytes: Int) -> Bool {
        inbox.entries < maxEntries + maxEntries / 4 && inbox.bytes + bytes <= maxBytes + maxBytes / 4
    }

    package static let isFull = HermesError(
        .inboxFull,
        "too much waits for the receiver, or too much of it from you; wait until some of it is read",
        retryAfter: .seconds(60)
    )
    package static let tooMuchUnread = HermesError(
        .tooMuchUnread,
        "too much of what you sent is not read yet (limits.unreadPerAccount); wait until some of it is",
        retryAfter: .seconds(60)
    )
}
