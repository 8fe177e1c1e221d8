// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The layouts of contact and group events. Append only, like all of ``EventCoding``.
extension EventCoding {
    static func append(_ event: ContactEvent, to bytes: inout [UInt8]) {
        append(UInt64(event.kind.rawValue), count: 1, to: &bytes)
        append(event.user, to: &bytes)
        append(event.nickName, to: &bytes)
        append(event.message, to: &bytes)
    }

    static func takeContact(from bytes: inout ArraySlice<UInt8>) -> ContactEvent? {
        guard let kind = take(1, from: &bytes).flatMap({ ContactEvent.Kind(rawValue: UInt8(clamping: $0)) }),
            let user = takeUser(from: &bytes),
            let nickName = takeText(from: &bytes),
            let message = takeText(from: &bytes)
        else { return nil }
        return ContactEvent(kind: kind, user: user, nickName: nickName, message: message)
    }

    static func append(_ event: GroupEvent, to bytes: inout [UInt8]) {
        append(UInt64(event.kind.rawValue), count: 1, to: &bytes)
        append(UInt64(event.group.id.rawValue), count: 4, to: &bytes)
        append(event.group.name, to: &bytes)
        append(event.group.avatarURL, to: &bytes)
        // Bit 0: muted; bit 1: open history.
        append((event.group.isMuted ? 1 : 0) | (event.group.isHistoryOpen ? 2 : 0), count: 1, to: &bytes)
        append(UInt64(event.group.memberCount), count: 4, to: &bytes)
        append(UInt64(bitPattern: event.group.createdAt.rawValue), count: 8, to: &bytes)
        append(event.by, to: &bytes)
        append(UInt64(event.users.count), count: 4, to: &bytes)
        for user in event.users { append(user, to: &bytes) }
    }

    static func takeGroup(from bytes: inout ArraySlice<UInt8>) -> GroupEvent? {
        guard let kind = take(1, from: &bytes).flatMap({ GroupEvent.Kind(rawValue: UInt8(clamping: $0)) }),
            let id = take(4, from: &bytes).flatMap({ Int32(exactly: $0) }).flatMap(GroupID.init(rawValue:)),
            let name = takeText(from: &bytes),
            let avatarURL = takeText(from: &bytes),
            let flags = take(1, from: &bytes),
            let memberCount = take(4, from: &bytes),
            let createdAt = take(8, from: &bytes),
            let by = takeUser(from: &bytes),
            let count = take(4, from: &bytes), count * 4 <= bytes.count
        else { return nil }
        var users: [UserID] = []
        for _ in 0..<count {
            guard let user = takeUser(from: &bytes) else { return nil }
            users.append(user)
        }
        let summary = GroupSummary(
            id: id,
            name: name,
            avatarURL: avatarURL,
            isMuted: flags & 1 != 0,
            isHistoryOpen: flags & 2 != 0,
            memberCount: Int(memberCount),
            createdAt: Timestamp(rawValue: Int64(bitPattern: createdAt))
        )
        return GroupEvent(kind: kind, group: summary, by: by, users: users)
    }

    private static func append(_ user: UserID, to bytes: inout [UInt8]) {
        append(UInt64(user.rawValue), count: 4, to: &bytes)
    }

    private static func takeUser(from bytes: inout ArraySlice<UInt8>) -> UserID? {
        take(4, from: &bytes).flatMap { UserID($0) }
    }

    /// Appends the length in two bytes, then the text; text beyond the core's limit is cut.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        let characters = text.utf8.prefix(Int(UInt16.max))
        append(UInt64(characters.count), count: 2, to: &bytes)
        bytes.append(contentsOf: characters)
    }

    static func takeText(from bytes: inout ArraySlice<UInt8>) -> String? {
        guard let count = take(2, from: &bytes), bytes.count >= Int(count) else { return nil }
        let text = String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
        bytes = bytes.dropFirst(Int(count))
        return text
    }
}
