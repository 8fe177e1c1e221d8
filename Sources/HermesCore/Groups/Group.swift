// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The role of a member; each role includes the rights of the lower roles.
package enum GroupRole: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    /// May send messages.
    case member = 1
    /// May also add, remove and mute members, and change the group.
    case administrator = 2
    /// May also change roles, and dissolve the group. Every group has exactly one owner.
    case owner = 3

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A member of a group.
package struct GroupMember: Sendable, Hashable {
    package let user: UserID
    package var role: GroupRole
    /// The time until which the member may not send messages; 0 if the member is not muted.
    package var mutedUntil: Timestamp
    /// The conversation seq of the group's last message before this member joined; 0 if there was no message.
    package var joinedAfter: UInt64

    package init(
        user: UserID,
        role: GroupRole = .member,
        mutedUntil: Timestamp = Timestamp(rawValue: 0),
        joinedAfter: UInt64 = 0
    ) {
        self.user = user
        self.role = role
        self.mutedUntil = mutedUntil
        self.joinedAfter = joinedAfter
    }
}

/// A group without its members.
package struct GroupSummary: Sendable, Hashable {
    package let id: GroupID
    /// The name, of 1 to ``Group/maxNameCharacters`` characters.
    package var name: String
    /// The URL of the picture, of at most ``Account/maxAvatarURLBytes`` bytes; empty if there is no picture.
    package var avatarURL: String
    /// Whether only the owner and administrators may send messages.
    package var isMuted: Bool
    /// Whether members may read the messages that were sent before they joined.
    package var isHistoryOpen: Bool
    package var memberCount: Int
    package let createdAt: Timestamp

    package init(
        id: GroupID,
        name: String,
        avatarURL: String = "",
        isMuted: Bool = false,
        isHistoryOpen: Bool = false,
        memberCount: Int,
        createdAt: Timestamp
    ) {
        self.id = id
        self.name = name
        self.avatarURL = avatarURL
        self.isMuted = isMuted
        self.isHistoryOpen = isHistoryOpen
        self.memberCount = memberCount
        self.createdAt = createdAt
    }
}

/// A group with its members. `Group+Rules.swift` holds the rules.
package struct Group: Sendable, Hashable {
    /// The summary; its `memberCount` always matches ``members``.
    package private(set) var summary: GroupSummary
    /// The members, ascending by user. Each user occurs only once.
    package private(set) var members: [GroupMember]

    /// The maximum number of members of a group. The number is limited because a message to a group takes one entry in
    /// the inbox of each member.
    package static let maxMembers = 500
    /// The maximum length of a name, in characters.
    package static let maxNameCharacters = 64
    /// The maximum length of a name, in bytes.
    package static let maxNameBytes = 256

    package init(_ summary: GroupSummary, members: [GroupMember]) {
        self.summary = summary
        self.members = members.sorted { $0.user < $1.user }
        self.summary.memberCount = members.count
    }

    package var id: GroupID { summary.id }

    /// The accounts of all members, ascending.
    package var users: [UserID] { members.map(\.user) }

    /// Returns the index of a member; nil if the user is not a member.
    package func index(of user: UserID) -> Int? {
        var low = 0
        var high = members.count
        while low < high {
            let middle = (low + high) / 2
            if members[middle].user < user { low = middle + 1 } else { high = middle }
        }
        return low < members.count && members[low].user == user ? low : nil
    }

    /// Returns the member with this id; nil if the user is not a member.
    package func member(_ user: UserID) -> GroupMember? { index(of: user).map { members[$0] } }

    /// Returns the conversation seq after which the user may read the group's history. 0 means that the user may read
    /// the whole history. Nil means that the user is not a member.
    package func readableAfter(_ user: UserID) -> UInt64? {
        member(user).map { summary.isHistoryOpen ? 0 : $0.joinedAfter }
    }

    mutating func changeSummary(_ body: (inout GroupSummary) -> Void) { body(&summary) }

    mutating func set(_ member: GroupMember) {
        if let index = index(of: member.user) {
            members[index] = member
        } else {
            members.insert(member, at: members.firstIndex { $0.user > member.user } ?? members.count)
            summary.memberCount = members.count
        }
    }

    mutating func remove(_ user: UserID) {
        guard let index = index(of: user) else { return }
        members.remove(at: index)
        summary.memberCount = members.count
    }
}
