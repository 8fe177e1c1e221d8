// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a member of a group may do; each role may do what those below it may.
package enum GroupRole: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    /// Talks.
    case member = 1
    /// Adds, removes and mutes members and changes the group.
    case administrator = 2
    /// Changes roles and dissolves the group. Every group has exactly one.
    case owner = 3

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A member of a group.
package struct GroupMember: Sendable, Hashable {
    package let user: UserID
    package var role: GroupRole
    /// May not talk before this moment; 0: may talk.
    package var mutedUntil: Timestamp

    package init(user: UserID, role: GroupRole = .member, mutedUntil: Timestamp = Timestamp(rawValue: 0)) {
        self.user = user
        self.role = role
        self.mutedUntil = mutedUntil
    }
}

/// A group without its members.
package struct GroupSummary: Sendable, Hashable {
    package let id: GroupID
    /// 1 to ``Group/maxNameCharacters`` characters.
    package var name: String
    /// At most ``Account/maxAvatarURLBytes``.
    package var avatarURL: String
    /// Nobody but the owner and administrators may talk.
    package var isMuted: Bool
    package var memberCount: Int
    package let createdAt: Timestamp

    package init(
        id: GroupID,
        name: String,
        avatarURL: String = "",
        isMuted: Bool = false,
        memberCount: Int,
        createdAt: Timestamp
    ) {
        self.id = id
        self.name = name
        self.avatarURL = avatarURL
        self.isMuted = isMuted
        self.memberCount = memberCount
        self.createdAt = createdAt
    }
}

/// A group with its members. What may be done to it: `Group+Rules.swift`.
package struct Group: Sendable, Hashable {
    /// Without `memberCount`'s doubt: it is kept in step with ``members``.
    package private(set) var summary: GroupSummary
    /// Ascending by user, each once.
    package private(set) var members: [GroupMember]

    /// A message to a group is one pointer in each member's inbox, hence the bound.
    package static let maxMembers = 500
    /// The longest name, in characters.
    package static let maxNameCharacters = 64
    /// The longest name, in bytes.
    package static let maxNameBytes = 256

    package init(_ summary: GroupSummary, members: [GroupMember]) {
        self.summary = summary
        self.members = members.sorted { $0.user < $1.user }
        self.summary.memberCount = members.count
    }

    package var id: GroupID { summary.id }

    /// All members, ascending.
    package var users: [UserID] { members.map(\.user) }

    /// The member's place; nil: not one.
    package func index(of user: UserID) -> Int? {
        var low = 0
        var high = members.count
        while low < high {
            let middle = (low + high) / 2
            if members[middle].user < user { low = middle + 1 } else { high = middle }
        }
        return low < members.count && members[low].user == user ? low : nil
    }

    /// The member with this id; nil: not one.
    package func member(_ user: UserID) -> GroupMember? { index(of: user).map { members[$0] } }

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
