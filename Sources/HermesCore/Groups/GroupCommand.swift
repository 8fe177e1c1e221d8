// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An action on a group.
package enum GroupCommand: Sendable, Hashable {
    /// Creates a group. The creator becomes its owner.
    case create(name: String, members: [UserID])
    case change(GroupID, GroupChange)
    case changeMembers(GroupID, MemberChanges)
    case leave(GroupID)
    case dissolve(GroupID)

    /// The group that the action changes; nil if the action creates a group.
    package var group: GroupID? {
        switch self {
        case .create: nil
        case .change(let group, _), .changeMembers(let group, _), .leave(let group), .dissolve(let group): group
        }
    }

    /// The accounts to be added.
    package var added: [UserID] {
        switch self {
        case .create(_, let members): members
        case .changeMembers(_, let changes): changes.added
        case .change, .leave, .dissolve: []
        }
    }
}

/// A change of a group. Fields that are nil stay unchanged.
package struct GroupChange: Sendable, Hashable {
    package var name: String?
    package var avatarURL: String?
    package var isMuted: Bool?
    package var isHistoryOpen: Bool?

    package init(
        name: String? = nil,
        avatarURL: String? = nil,
        isMuted: Bool? = nil,
        isHistoryOpen: Bool? = nil
    ) {
        self.name = name
        self.avatarURL = avatarURL
        self.isMuted = isMuted
        self.isHistoryOpen = isHistoryOpen
    }
}

/// Changes to a group's members. Either all of the changes are made, or none of them.
package struct MemberChanges: Sendable, Hashable {
    /// A change of a member's role or muting.
    package struct Role: Sendable, Hashable {
        package let user: UserID
        /// The new role; nil if the role stays unchanged.
        package let role: GroupRole?
        /// The new time until which the member is muted; 0 if the member is not muted.
        package let mutedUntil: Timestamp

        package init(user: UserID, role: GroupRole?, mutedUntil: Timestamp = Timestamp(rawValue: 0)) {
            self.user = user
            self.role = role
            self.mutedUntil = mutedUntil
        }
    }

    /// The accounts to add; existing members stay as they are.
    package var added: [UserID]
    /// The members to remove; accounts that are not members are ignored.
    package var removed: [UserID]
    package var roles: [Role]

    package init(added: [UserID] = [], removed: [UserID] = [], roles: [Role] = []) {
        self.added = added
        self.removed = removed
        self.roles = roles
    }
}

/// An event about a change of a group, for the inbox of each member.
package struct GroupEvent: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        case created = 1
        /// The name, the picture, the muting or the openness of the history has changed, or the role or the muting of a
        /// member has changed.
        case changed = 2
        case membersAdded = 3
        case membersRemoved = 4
        case dissolved = 5
    }

    package let kind: Kind
    /// The group after the change.
    package let group: GroupSummary
    /// The account that made the change.
    package let by: UserID
    /// The added or removed accounts.
    package let users: [UserID]

    package init(kind: Kind, group: GroupSummary, by: UserID, users: [UserID] = []) {
        self.kind = kind
        self.group = group
        self.by = by
        self.users = users
    }
}
