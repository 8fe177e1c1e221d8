// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The source of an inbox entry, which decides whose share it counts for.
package enum EntrySource: Hashable, Sendable {
    /// The server: contact and group events, marks, pushes.
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

    /// The stored form: positive for users, negative for groups.
    package var number: Int64 {
        switch self {
        case .server: 0
        case .user(let user): Int64(user.rawValue)
        case .group(let group): -Int64(group.rawValue)
        }
    }
}

/// The limits of one inbox, and of one sender's share of it. The same for every store.
///
/// One sender, and one group, holds at most a quarter, so that none fills an inbox for all others. Once an inbox is half
/// full, only what its owner, its owner's contacts and back ends cause has room, in groups too: accounts and groups are
/// free, so that strangers could fill all of it together. Entries other than messages have a reserve of a further quarter.
/// A group message, another entry, or the sender's own copy that finds no room leaves its place in the inbox empty;
/// devices are told as for an expired entry. From an eighth on, what one device has taken waits for no other
/// (``InboxCursors``): below a quarter every message has room, so there is time to delete it.
package struct InboxBudget: Hashable, Sendable {
    /// The approximate size of an entry without its content.
    package static let entryBytes = 128

    package var maxEntries: Int
    package var maxBytes: Int

    package init(maxEntries: Int = 100_000, maxBytes: Int = 128 << 20) {
        self.maxEntries = max(4, maxEntries)
        self.maxBytes = max(4, maxBytes)
    }

    package static func weight(ofContent bytes: Int) -> Int { bytes + entryBytes }

    /// Whether the sender's share must be checked: below a quarter in all, no share can exceed a quarter.
    package func needsShare(_ inbox: Holding, adding bytes: Int) -> Bool {
        inbox.entries >= maxEntries / 4 || inbox.bytes + bytes > maxBytes / 4
    }

    /// Whether a message has room.
    ///
    /// - Parameter share: what waits from its source; used only if ``needsShare(_:adding:)`` is true.
    package func hasRoom(in inbox: Holding, share: Holding, adding bytes: Int) -> Bool {
        guard needsShare(inbox, adding: bytes) else { return true }
        return inbox.entries < maxEntries && inbox.bytes + bytes <= maxBytes
            && share.entries < maxEntries / 4 && share.bytes + bytes <= maxBytes / 4
    }

    /// Whether entries no longer wait for devices that stay away.
    package func isCrowded(_ inbox: Holding) -> Bool {
        inbox.entries >= maxEntries / 8 || inbox.bytes >= maxBytes / 8
    }

    /// Whether what a stranger causes, with whom the inbox's owner has no contact, has no room any more.
    package func isClosedToStrangers(_ inbox: Holding, adding bytes: Int) -> Bool {
        inbox.entries >= maxEntries / 2 || inbox.bytes + bytes > maxBytes / 2
    }

    /// Whether an entry other than a message has room.
    package func hasReserve(in inbox: Holding, adding bytes: Int) -> Bool {
        inbox.entries < maxEntries + maxEntries / 4 && inbox.bytes + bytes <= maxBytes + maxBytes / 4
    }

    /// Whether one receiver may take so much more of what a sender may have unread everywhere. Once half of that is used, a
    /// receiver has one message or a 64th of it: accounts that read nothing stop no sender for others.
    ///
    /// - Parameters:
    ///   - weight: the message's.
    ///   - unread: what is unread of the sender's in all inboxes.
    ///   - share: what is unread of it in the receiver's, in bytes; asked for only if needed.
    package static func leavesOthers(
        _ weight: Int,
        unread: Int,
        of limit: Int,
        share: () throws -> Int
    ) rethrows -> Bool {
        guard unread + weight > limit / 2 else { return true }
        guard unread + weight <= limit else { return false }
        let held = try share()
        return held == 0 || held + weight <= limit / 64
    }

    package static let isFull = HermesError(
        .inboxFull,
        "the receiver's inbox is full, or your share of it; wait until some entries are read",
        retryAfter: .seconds(60)
    )
    package static let tooMuchUnread = HermesError(
        .tooMuchUnread,
        "too many of your messages are unread (limits.unreadPerAccount); wait until some are read",
        retryAfter: .seconds(60)
    )
}
