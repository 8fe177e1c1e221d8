// Hermes
// SPDX-License-Identifier: Apache-2.0

extension GroupEvent: DurableKind {
    package static let storedKind = InboxEvent.StoredKind.group

    package func store(into bytes: inout [UInt8]) {
        StoredForm.append(UInt64(kind.rawValue), count: 1, to: &bytes)
        StoredForm.append(UInt64(group.id.rawValue), count: 4, to: &bytes)
        StoredForm.append(group.name, to: &bytes)
        StoredForm.append(group.avatarURL, to: &bytes)
        // Bit 0 means that the group is muted. Bit 1 means that the history is open.
        StoredForm.append((group.isMuted ? 1 : 0) | (group.isHistoryOpen ? 2 : 0), count: 1, to: &bytes)
        StoredForm.append(UInt64(group.memberCount), count: 4, to: &bytes)
        StoredForm.append(group.createdAt, to: &bytes)
        StoredForm.append(by, to: &bytes)
        StoredForm.append(UInt64(users.count), count: 4, to: &bytes)
        for user in users { StoredForm.append(user, to: &bytes) }
    }

    package init?(stored bytes: inout ArraySlice<UInt8>) {
        guard let kind = StoredForm.take(1, from: &bytes).flatMap({ Kind(rawValue: UInt8(clamping: $0)) }),
            let id = StoredForm.take(4, from: &bytes).flatMap({ Int32(exactly: $0) }).flatMap(GroupID.init(rawValue:)),
            let name = StoredForm.takeText(from: &bytes),
            let avatarURL = StoredForm.takeText(from: &bytes),
            let flags = StoredForm.take(1, from: &bytes),
            let memberCount = StoredForm.take(4, from: &bytes),
            let createdAt = StoredForm.takeTime(from: &bytes),
            let by = StoredForm.takeUser(from: &bytes),
            let count = StoredForm.take(4, from: &bytes), count * 4 <= bytes.count
        else { return nil }
        var users: [UserID] = []
        for _ in 0..<count {
            guard let user = StoredForm.takeUser(from: &bytes) else { return nil }
            users.append(user)
        }
        let summary = GroupSummary(
            id: id,
            name: name,
            avatarURL: avatarURL,
            isMuted: flags & 1 != 0,
            isHistoryOpen: flags & 2 != 0,
            memberCount: Int(memberCount),
            createdAt: createdAt
        )
        self.init(kind: kind, group: summary, by: by, users: users)
    }

    package var actor: UserID? { by }
    package func alert(for user: UserID) -> EventAlert? { nil }
}
