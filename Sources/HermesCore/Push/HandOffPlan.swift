// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// Decides which notifications a device gets for its waiting entries. Does no I/O.
///
/// An entry is push-worthy if it is an event with an ``EventAlert``, or a message from somebody else. A message that
/// was recalled, or was read on another device, is not push-worthy. Each conversation and each collapse key gets one
/// notification, for its newest entry.
package struct HandOffPlan: Sendable {
    /// A notification and the entries that it stands for.
    package struct Item: Sendable, Hashable {
        package var notification: PushNotification
        /// The seq of the oldest of these entries.
        package let firstSeq: UInt64
        /// The seq of the newest of these entries.
        package let lastSeq: UInt64
    }

    /// The largest number of notifications in a plan. If there are more notifications, the plan contains only the
    /// notifications with the newest entries. The badge counts all entries.
    package static let maxItems = 20

    /// The notifications, in the order of their newest entries.
    package let items: [Item]
    /// The seq of the last entry that was considered.
    package let upTo: UInt64
    /// The seqs of the push-worthy entries that are due, in ascending order.
    package let dueSeqs: [UInt64]

    /// Creates the plan.
    ///
    /// - Parameters:
    ///   - user: the inbox's user.
    ///   - device: the device to notify.
    ///   - entries: the entries that the device has not acknowledged, in ascending order, without expired entries.
    ///   - seq: the seq of the last entry that was pushed. This entry and earlier entries only count towards the badge.
    ///   - end: the seq of the last entry that is due. Later entries count towards the badge. Read marks among them
    ///     show which messages were read.
    ///   - unread: the badge; nil for the number of push-worthy entries.
    ///   - text: returns the text of the notification for a message.
    package init(
        for user: UserID,
        _ device: DeviceID,
        entries: [InboxEntry],
        pushedUpTo seq: UInt64,
        through end: UInt64 = .max,
        unread: Int? = nil,
        text: (Message) -> PushText
    ) {
        upTo = min(entries.last?.lastSeq ?? seq, end)
        let worthy = Self.pushWorthy(entries, for: user, device)
        let badge = unread ?? worthy.count
        var first: [String: UInt64] = [:]
        var last: [String: InboxEntry] = [:]
        let due = worthy.filter { $0.seq > seq && $0.lastSeq <= end }
        dueSeqs = due.map(\.seq)
        for entry in due {
            let key = Self.collapseKey(entry, for: user)
            first[key] = first[key] ?? entry.seq
            last[key] = entry
        }
        let newest = last.sorted { $0.value.seq < $1.value.seq }.suffix(Self.maxItems)
        items = newest.map { key, entry in
            Item(
                notification: Self.notification(entry, for: user, device, badge: badge, key: key, text: text),
                firstSeq: first[key] ?? entry.seq,
                lastSeq: entry.seq
            )
        }
    }

    /// Returns the push-worthy entries.
    ///
    /// - Parameter device: the device to notify; nil for any device of the user.
    package static func pushWorthy(_ entries: [InboxEntry], for user: UserID, _ device: DeviceID?) -> [InboxEntry] {
        var read: [ConversationID: UInt64] = [:]
        for case .readMark(let mark) in entries.lazy.map(\.event) where mark.user == user {
            read[mark.conversation] = max(read[mark.conversation] ?? 0, mark.upTo)
        }
        return entries.filter { entry in
            guard case .message(let message) = entry.event else {
                return entry.event.alert(for: user) != nil && (device.map { entry.event.isFor($0) } ?? true)
            }
            return message.sender != user && !message.isRecalled
                && message.conversationSeq > read[message.conversation] ?? 0
        }
    }

    private static func collapseKey(_ entry: InboxEntry, for user: UserID) -> String {
        if case .message(let message) = entry.event {
            switch message.conversation {
            case .direct(let low, let high): return "direct/\(low.rawValue)-\(high.rawValue)"
            case .group(let group): return "group/\(group.rawValue)"
            }
        }
        // These keys differ from all keys of conversations, whatever key the back end chooses.
        guard let alert = entry.event.alert(for: user), !alert.collapseKey.isEmpty || alert.id != nil else {
            return "entry/\(entry.seq)"
        }
        return alert.collapseKey.isEmpty ? alert.id.map { "push/\($0)" } ?? "" : "key/\(alert.collapseKey)"
    }

    /// Returns a conversation's name for a user's app and back end: `direct/<the peer's uid>` or `group/<id>`.
    static func name(of conversation: ConversationID, for user: UserID) -> String {
        switch conversation {
        case .direct(let low, _): "direct/\((conversation.peer(of: user) ?? low).rawValue)"
        case .group(let group): "group/\(group.rawValue)"
        }
    }

    private static func notification(
        _ entry: InboxEntry,
        for user: UserID,
        _ device: DeviceID,
        badge: Int,
        key: String,
        text: (Message) -> PushText
    ) -> PushNotification {
        let id = id(of: entry.seq, user, device)
        if case .message(let message) = entry.event {
            let text = text(message)
            return PushNotification(
                id: id,
                title: text.title,
                body: text.body,
                badge: badge,
                reference: .init(
                    conversation: name(of: message.conversation, for: user),
                    inboxSeq: entry.seq,
                    messageID: String(describing: message.id),
                    user: user
                ),
                collapseKey: key,
                expiresAt: message.expiresAt
            )
        }
        // The alert is never nil here, because the entry is push-worthy.
        let alert = entry.event.alert(for: user) ?? EventAlert(title: "", body: "")
        return PushNotification(
            id: id,
            title: alert.title,
            body: alert.body,
            badge: badge,
            reference: .init(
                conversation: nil,
                inboxSeq: entry.seq,
                messageID: alert.id.map { String(describing: $0) },
                user: user
            ),
            data: alert.dataJSON.isEmpty ? nil : alert.dataJSON,
            collapseKey: key,
            expiresAt: alert.expiresAt ?? entry.committedAt.advanced(by: EventAlert.lifetime),
            priority: alert.priority
        )
    }

    /// Returns the id of a notification. The id is always the same for the same entry and device. It is a UUID of
    /// version 8 (RFC 9562, section 5.8) that is made from a hash.
    static func id(of seq: UInt64, _ user: UserID, _ device: DeviceID) -> String {
        var bytes = Array(SHA256.hash(data: Data("\(user.rawValue) \(device.rawValue) \(seq)".utf8)).prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { bytes[$0].hexDigits }.joined(separator: "-")
    }
}

/// The texts of a notification for a message.
package struct PushText: Sendable, Hashable {
    package var title: String
    package var body: String

    package init(title: String, body: String) {
        self.title = title
        self.body = body
    }
}
