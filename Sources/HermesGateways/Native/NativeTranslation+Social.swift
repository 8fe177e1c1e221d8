// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates contacts and groups.
extension NativeTranslation {
    // MARK: Contacts

    static func contact(_ contact: Contact, isOnline: Bool) -> Hermes_V1_Contact {
        var answer = Hermes_V1_Contact()
        answer.uid = UInt32(contact.account.id.rawValue)
        answer.nickName = contact.account.nickName.rawValue
        answer.avatarURL = contact.account.avatarURL
        answer.isOnline = isOnline
        answer.state =
            switch contact.state {
            case .accepted: .accepted
            case .requested: .requested
            case .incoming: .incoming
            case .blocked: .blocked
            }
        return answer
    }

    // MARK: Groups

    static func member(_ member: GroupMember, name: String) -> Hermes_V1_GroupMember {
        var answer = Hermes_V1_GroupMember()
        answer.uid = UInt32(member.user.rawValue)
        answer.nickName = name
        answer.mutedUntilMs = member.mutedUntil.rawValue
        answer.role =
            switch member.role {
            case .member: .member
            case .administrator: .administrator
            case .owner: .owner
            }
        return answer
    }

    /// Translates a request that changes a group. Requests that only read are refused.
    static func groupCommand(_ request: Hermes_V1_GroupRequest) throws(HermesError) -> GroupCommand {
        switch request.request {
        case .create(let create):
            return .create(name: create.name, members: try RequestedIDs.users(create.memberUids))
        case .change(let change):
            let changes = GroupChange(
                name: change.hasName ? change.name : nil,
                avatarURL: change.hasAvatarURL ? change.avatarURL : nil,
                isMuted: change.hasMuted ? change.muted : nil,
                isHistoryOpen: change.hasHistoryOpen ? change.historyOpen : nil
            )
            return .change(try group(change.groupID), changes)
        case .changeMembers(let change):
            let changes = MemberChanges(
                added: try RequestedIDs.users(change.addUids),
                removed: try RequestedIDs.users(change.removeUids),
                roles: try roles(change.changeRoles)
            )
            return .changeMembers(try group(change.groupID), changes)
        case .leave(let selector):
            return .leave(try group(selector.groupID))
        case .dissolve(let selector):
            return .dissolve(try group(selector.groupID))
        case .get, .list, nil:
            throw HermesError(.invalidArgument, "this request changes no group")
        }
    }

    private static func group(_ id: UInt32) throws(HermesError) -> GroupID {
        guard let group = RequestedIDs.group(id) else { throw RequestedIDs.badGroup }
        return group
    }

    private static func roles(_ members: [Hermes_V1_GroupMember]) throws(HermesError) -> [MemberChanges.Role] {
        let users = try RequestedIDs.users(members.map(\.uid))
        var roles: [MemberChanges.Role] = []
        for (user, member) in zip(users, members) {
            let role: GroupRole?
            switch member.role {
            case .unspecified: role = nil
            case .member: role = .member
            case .administrator: role = .administrator
            case .owner: role = .owner
            case .UNRECOGNIZED: throw HermesError(.invalidArgument, "the server does not know this role")
            }
            roles.append(
                MemberChanges.Role(user: user, role: role, mutedUntil: Timestamp(rawValue: member.mutedUntilMs))
            )
        }
        return roles
    }
}
