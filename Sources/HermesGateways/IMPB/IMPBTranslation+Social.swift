// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// Translates friends, pushes and groups.
extension IMPBTranslation {
    /// The number of bytes in a frame that are available for a list, without the framing.
    private static let listBytes = IMPBFrame.maxBodyBytes - 64

    // MARK: Friends

    /// Returns the list of friends; nil if it does not fit into a frame.
    static func userList(_ contacts: [Contact], isOnline: (UserID) -> Bool) -> IMPB_user_info_list_res? {
        var list = IMPB_user_info_list_res()
        var room = listBytes
        for contact in contacts {
            room -= contact.account.nickName.rawValue.utf8.count + contact.account.avatarURL.utf8.count + 24
            guard room >= 0 else { return nil }
            list.userList.append(userInfo(contact.account, isOnline: isOnline(contact.account.id)))
        }
        return list
    }

    static func notification(_ event: ContactEvent, for reader: UserID) -> IMPB_Notification_msg {
        switch event.kind {
        case .requested:
            var body = IMPB_add_friend_noti()
            body.opID = String(event.user.rawValue)
            body.extMsg = event.message
            return notification(.addfriendReq, for: reader, body)
        case .accepted, .declined:
            var body = IMPB_receive_friend_noti()
            body.isReceive = event.kind == .accepted
            body.opUid = String(event.user.rawValue)
            body.extMsg = event.message
            return notification(.receiveFriend, for: reader, body)
        case .removed:
            var body = IMPB_friend_target_req()
            body.uid = UInt32(event.user.rawValue)
            return notification(.friendRemoved, for: reader, body)
        }
    }

    // MARK: Pushes

    static func notification(_ push: Push, for reader: UserID) -> IMPB_Notification_msg {
        var body = IMPB_push_notification()
        body.id = push.id.description
        body.title = push.content.title
        body.body = push.content.body
        body.dataJson = push.content.dataJSON
        body.collapseKey = push.content.collapseKey
        if let message = push.content.message {
            body.messageType = message.type
            body.messageBytes = Data(message.bytes)
        }
        return notification(.push, for: reader, body)
    }

    // MARK: Groups

    static func group(_ id: Int32) throws(HermesError) -> GroupID {
        guard let group = GroupID(rawValue: id) else { throw RequestedIDs.badGroup }
        return group
    }

    static func memberChanges(_ request: IMPB_group_members_request) throws(HermesError) -> GroupCommand {
        let users = try RequestedIDs.users(request.changeRoles.map(\.uid))
        var roles: [MemberChanges.Role] = []
        for (user, member) in zip(users, request.changeRoles) {
            let role: GroupRole
            switch member.role {
            case .member: role = .member
            case .administrator: role = .administrator
            case .owner: role = .owner
            case .UNRECOGNIZED: throw HermesError(.invalidArgument, "the server does not know this role")
            }
            roles.append(MemberChanges.Role(user: user, role: role, mutedUntil: Timestamp(rawValue: member.mutedUntil)))
        }
        let changes = MemberChanges(
            added: try RequestedIDs.users(request.addUids),
            removed: try RequestedIDs.users(request.removeUids),
            roles: roles
        )
        return .changeMembers(try group(request.groupID), changes)
    }

    static func group(_ summary: GroupSummary) -> IMPB_Group_info {
        var info = IMPB_Group_info()
        info.groupID = summary.id.rawValue
        info.name = summary.name
        info.avartaURL = summary.avatarURL
        info.memberCount = UInt32(clamping: summary.memberCount)
        info.muted = summary.isMuted
        info.historyOpen = summary.isHistoryOpen
        return info
    }

    /// Returns the group, with as many members as fit into a frame.
    static func group(_ group: Group, names: [UserID: String]) -> IMPB_Group_info {
        var info = self.group(group.summary)
        var room = listBytes - group.summary.name.utf8.count - group.summary.avatarURL.utf8.count
        for member in group.members {
            var item = IMPB_Group_member()
            item.uid = UInt32(member.user.rawValue)
            item.nickName = names[member.user] ?? ""
            item.mutedUntil = member.mutedUntil.rawValue
            item.role =
                switch member.role {
                case .member: .member
                case .administrator: .administrator
                case .owner: .owner
                }
            room -= item.nickName.utf8.count + 32
            guard room >= 0 else { break }
            info.members.append(item)
        }
        return info
    }

    /// Returns the first groups of `found`: as many as fit into a frame, and at most `limit`.
    static func groupList(_ found: [GroupSummary], limit: Int) -> IMPB_group_list_response {
        var list = IMPB_group_list_response()
        var room = listBytes
        for summary in found.prefix(limit) {
            room -= summary.name.utf8.count + summary.avatarURL.utf8.count + 32
            guard room >= 0 else { break }
            list.groups.append(group(summary))
        }
        list.more = list.groups.count < found.count
        return list
    }

    static func notification(_ event: GroupEvent, for reader: UserID) -> IMPB_Notification_msg {
        var body = IMPB_group_notification()
        body.kind =
            switch event.kind {
            case .created: .created
            case .changed: .changed
            case .membersAdded: .membersAdded
            case .membersRemoved: .membersRemoved
            case .dissolved: .dissolved
            }
        body.group = group(event.group)
        body.byUid = UInt32(event.by.rawValue)
        body.uids = event.users.map { UInt32($0.rawValue) }
        return notification(.groupChanged, for: reader, body)
    }
}
