// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What somebody does with a group.
package enum GroupCommand: Sendable, Hashable {
    /// Creates one; the creator is its owner.
    case create(name: String, members: [UserID])
    case change(GroupID, GroupChange)
    case changeMembers(GroupID, MemberChanges)
    case leave(GroupID)
    case dissolve(GroupID)

    /// Which group; nil: one that is not there yet.
    package var group: GroupID? {
        switch self {
        case .create: nil
        case .change(let group, _), .changeMembers(let group, _), .leave(let group), .dissolve(let group): group
        }
    }

    /// Who would come in.
    package var added: [UserID] {
        switch self {
        case .create(_, let members): members
        case .changeMembers(_, let changes): changes.added
        case .change, .leave, .dissolve: []
        }
    }
}

/// A change of a group; nil leaves a field as it is.
package struct GroupChange: Sendable, Hashable {
    package var name: String?
    package var avatarURL: String?
    package var isMuted: Bool?

    package init(name: String? = nil, avatarURL: String? = nil, isMuted: Bool? = nil) {
        self.name = name
        self.avatarURL = avatarURL
        self.isMuted = isMuted
    }
}

/// Changes of a group's members, made together or not at all.
package struct MemberChanges: Sendable, Hashable {
    /// Another role, or muting.
    package struct Role: Sendable, Hashable {
        package let user: UserID
        /// Nil: as it is.
        package let role: GroupRole?
        /// 0: may talk.
        package let mutedUntil: Timestamp

        package init(user: UserID, role: GroupRole?, mutedUntil: Timestamp = Timestamp(rawValue: 0)) {
            self.user = user
            self.role = role
            self.mutedUntil = mutedUntil
        }
    }

    /// Who comes in; who is in already stays as it is.
    package var added: [UserID]
    /// Who goes out; who is not in is passed over.
    package var removed: [UserID]
    package var roles: [Role]

    package init(added: [UserID] = [], removed: [UserID] = [], roles: [Role] = []) {
        self.added = added
        self.removed = removed
        self.roles = roles
    }
}

/// What members are told, as an entry of each one's inbox.
package struct GroupEvent: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        case created = 1
        /// Name, picture or muting changed, or somebody's role.
        case changed = 2
        case membersAdded = 3
        case membersRemoved = 4
        case dissolved = 5
    }

    package let kind: Kind
    /// As it is after the change.
    package let group: GroupSummary
    /// Who did it.
    package let by: UserID
    /// Who was added or removed.
    package let users: [UserID]

    package init(kind: Kind, group: GroupSummary, by: UserID, users: [UserID] = []) {
        self.kind = kind
        self.group = group
        self.by = by
        self.users = users
    }
}
