// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The source of an inbox entry. The entry counts towards the share of its source in the inbox.
public enum EntrySource: Hashable, Sendable {
    /// The server: contact and group events, read marks and pushes.
    case server
    /// The sender of a 1:1 message.
    case user(UserID)
    /// A member that sends to a group; nil for all members of the group together.
    case group(GroupID, by: UserID?)

    package init(_ message: MessageAppend) {
        let sender = message.sender.user
        self =
            switch message.draft.conversation {
            case .direct: .user(sender)
            case .group(let group): .group(group, by: sender)
            }
    }

    /// The source that includes this source: the group for a member's messages, otherwise the source itself.
    package var whole: EntrySource {
        if case .group(let group, _) = self { .group(group, by: nil) } else { self }
    }

    /// The stored form. It is positive for users, and negative for groups and their members.
    package var number: Int64 { numbers.upperBound }

    /// The stored forms of the source and of all sources that it includes.
    package var numbers: ClosedRange<Int64> {
        switch self {
        case .server: return 0...0
        case .user(let user): return Int64(user.rawValue)...Int64(user.rawValue)
        case .group(let group, let member):
            let first = -(Int64(group.rawValue) << 32)
            guard let member else { return first - Int64(UInt32.max)...first }
            let number = first - Int64(member.rawValue)
            return number...number
        }
    }
}

/// The limits of one inbox, and of the shares of its senders. The limits are the same for every store.
///
/// - One sender, or one group, holds at most a quarter of an inbox, so that it cannot fill the inbox for all other
///   senders.
/// - One member of a group may hold at most as much of the group's quarter as remains free, so that other members can
///   still write. If no other member holds entries, this is half of the quarter. A member that holds no entries may
///   always add one message that fits into the rest of the quarter.
/// - When an inbox is at least half full, it accepts only entries that its owner, the owner's contacts or back ends
///   cause. This rule also applies to groups. Accounts and groups can be created without cost, so without the rule,
///   strangers together could fill the whole inbox.
/// - For entries that are not messages, there is a reserve of an additional quarter.
/// - If a group message, an entry that is not a message, or the sender's own copy of a message finds no room, its seq
///   in the inbox stays empty. Devices get the same notice as for an expired entry.
/// - When at least an eighth of an inbox is used, an entry that one device has acknowledged is no longer kept for the
///   other devices (``InboxCursors``). A 1:1 message always finds room until a quarter is used, so there is time to
///   delete such entries.
package struct InboxBudget: Hashable, Sendable {
    /// The approximate size of an entry without its content, in bytes.
    package static let entryBytes = 128

    package var maxEntries = 100_000
    package var maxBytes = 128 << 20

    package init() {}

    /// - Parameter maxBytes: nil for the default.
    package init(maxEntries: Int, maxBytes: Int? = nil) {
        self.maxEntries = max(4, maxEntries)
        if let maxBytes { self.maxBytes = max(4, maxBytes) }
    }

    package static func weight(ofContent bytes: Int) -> Int { bytes + entryBytes }

    /// Whether shares must be checked. While less than a quarter of the inbox is used, no share can exceed a quarter.
    /// While less than an eighth is used, no share of a group's member can exceed half of the group's quarter.
    package func needsShare(_ inbox: Holding, of source: EntrySource, adding bytes: Int) -> Bool {
        let part = source == source.whole ? 4 : 8
        return inbox.entries >= maxEntries / part || inbox.bytes + bytes > maxBytes / part
    }

    /// Whether a message has room.
    ///
    /// - Parameter share: returns the entries of a source that wait in the inbox; called only if it is needed.
    package func hasRoom(
        in inbox: Holding,
        from source: EntrySource,
        adding bytes: Int,
        share: (EntrySource) throws -> Holding
    ) rethrows -> Bool {
        guard needsShare(inbox, of: source, adding: bytes) else { return true }
        guard inbox.entries < maxEntries, inbox.bytes + bytes <= maxBytes else { return false }
        let limit = Holding(entries: maxEntries / 4, bytes: maxBytes / 4)
        var all = try share(source.whole)
        all.add(bytes)
        guard all.entries <= limit.entries, all.bytes <= limit.bytes else { return false }
        // A member holds no more than its group. So if the group holds at most half of its quarter, the member's share
        // need not be checked.
        let isMostOfIt = all.entries > limit.entries / 2 || all.bytes > limit.bytes / 2
        guard source != source.whole, isMostOfIt else { return true }
        var own = try share(source)
        // The first message of a member may be longer than half of the quarter.
        guard own.entries > 0 else { return true }
        own.add(bytes)
        return own.entries <= limit.entries - all.entries && own.bytes <= limit.bytes - all.bytes
    }

    /// Whether the inbox is so full that each entry is kept only until one device has acknowledged it
    /// (``InboxCursors``).
    package func isCrowded(_ inbox: Holding) -> Bool {
        inbox.entries >= maxEntries / 8 || inbox.bytes >= maxBytes / 8
    }

    /// Whether the inbox has no more room for entries of strangers. Strangers are accounts that are not contacts of the
    /// inbox's owner.
    package func isClosedToStrangers(_ inbox: Holding, adding bytes: Int) -> Bool {
        inbox.entries >= maxEntries / 2 || inbox.bytes + bytes > maxBytes / 2
    }

    /// Whether an entry that is not a message has room.
    package func hasReserve(in inbox: Holding, adding bytes: Int) -> Bool {
        inbox.entries < maxEntries + maxEntries / 4 && inbox.bytes + bytes <= maxBytes + maxBytes / 4
    }

    /// Whether a message to one receiver leaves enough of the sender's budget of unread messages for other receivers.
    /// When half of the budget is used, one receiver's inbox may hold only one of the sender's messages or a 64th of
    /// the budget. So accounts that read nothing cannot block a sender's messages to other accounts.
    ///
    /// - Parameters:
    ///   - weight: the size of the message, in bytes.
    ///   - unread: the sender's unread bytes in all inboxes.
    ///   - share: returns the sender's unread bytes in the receiver's inbox; called only if it is needed.
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

    /// Whether only the sender would get a message, although the message is addressed to others.
    ///
    /// - Parameter taking: the recipients whose inboxes have room for the message.
    package static func reachesNobody(
        _ taking: some Collection<UserID>,
        of recipients: [UserID],
        from sender: UserID
    ) -> Bool {
        taking.allSatisfy { $0 == sender } && (taking.isEmpty || recipients.count > 1)
    }

    package static let isFull = HermesError(
        .inboxFull,
        "the receiver's inbox is full, or your share of it; wait until some entries are acknowledged",
        retryAfter: .seconds(60)
    )
    package static let tooMuchUnread = HermesError(
        .tooMuchUnread,
        "your unread messages are too large in total (limits.unreadPerAccount); wait until some are acknowledged",
        retryAfter: .seconds(60)
    )
}

extension InboxBudget: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .byteCount(
            \.maxBytes,
            "limits.inbox",
            in: (8 << 20)...(1 << 40),
            "The largest total size of the entries in one account's inbox. One sender may use a quarter, and one group "
                + "may use a quarter. When half is used, entries from accounts that are not contacts are refused. When "
                + "an eighth is used, an entry is deleted as soon as one device has acknowledged it."
        ),
        .number(
            \.maxEntries,
            "limits.inboxEntries",
            in: 1000...100_000_000,
            "The largest number of entries in one account's inbox. One sender may use a quarter, and one group may use "
                + "a quarter. When half is used, entries from accounts that are not contacts are refused. When an "
                + "eighth is used, an entry is deleted as soon as one device has acknowledged it."
        ),
    ]
}
