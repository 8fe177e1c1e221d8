// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A group.
public struct ChatGroup: Hashable, Sendable, Identifiable {
    /// The group's id, as in ``Conversation/group(_:)``.
    public var id: GroupID
    /// The name: 1 to 64 characters.
    public var name: String
    /// The group's picture; nil if it has none.
    public var avatarURL: URL?
    /// Whether only the owner and administrators may send messages.
    public var isMuted: Bool
    /// Whether members can read messages that were sent before they joined, as far back as the server keeps them.
    public var isHistoryOpen: Bool
    /// The number of members.
    public var memberCount: Int
    /// The members. Only ``HermesClient/group(id:)`` fills them in; otherwise the array is empty.
    public var members: [GroupMember]
    /// The time at which the group was created.
    public var createdAt: Date
}

/// A member of a group.
public struct GroupMember: Hashable, Sendable {
    /// A member's rights. Newer versions add roles, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Role: Hashable, Sendable {
        /// A member who may send messages.
        case member
        /// A member who may also add, remove and mute members and change the group.
        case administrator
        /// The member who may also change roles and dissolve the group.
        case owner
        /// A role that this version does not know.
        case unknown
    }

    /// The member's account.
    public var uid: UserID
    /// The member's name.
    public var nickName: String
    /// The member's rights.
    public var role: Role
    /// The time until which the member may not send messages; nil if the member is not muted.
    public var mutedUntil: Date?
}

// MARK: - Groups
extension HermesClient {
    /// Creates a group. The caller is its owner.
    ///
    /// The request is not sent again after a lost connection, because a repeated request could create a second group.
    /// After a lost connection, ``groups()`` shows whether the group exists.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters.
    ///   - uids: the members in addition to the caller; at most 499.
    /// - Returns: the group.
    /// - Throws: HermesClientError `.notFound` if an account does not exist; `.forbidden` if one of the accounts does
    ///   not let the caller add it; `.connectionLost` if the connection ends before the answer; `.timedOut`;
    ///   CancellationError.
    public func createGroup(named name: String, with uids: [UserID] = []) async throws -> ChatGroup {
        try await group(replay: .never) { request in
            request.create.name = name
            request.create.memberUids = uids.map(\.rawValue)
        }
    }

    /// Fetches a group with its members.
    ///
    /// - Throws: HermesClientError `.forbidden` if there is no such group, or if the caller is not a member of it.
    public func group(id: GroupID) async throws -> ChatGroup { try await group { $0.get.groupID = id.rawValue } }

    /// Fetches the groups that the caller is a member of, sorted by id, without their members.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func groups() async throws -> [ChatGroup] {
        var groups: [ChatGroup] = []
        while true {
            var request = Hermes_V1_GroupRequest()
            request.list.afterGroupID = groups.last?.id.rawValue ?? 0
            request.list.limit = 500
            let result = try await result(of: .group(request), replay: .always)
            guard case .groups(let page) = result.value else { throw Self.unexpected("groups") }
            groups += page.groups.map { ChatGroup($0) }
            guard page.more, !page.groups.isEmpty else { return groups }
        }
    }

    /// Changes a group; nil leaves a value as it is. Only the owner and administrators may do this.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters.
    ///   - avatarURL: at most 1,024 bytes; `.some(nil)` removes the picture.
    ///   - isMuted: whether only the owner and administrators may send messages.
    ///   - isHistoryOpen: whether members can read messages that were sent before they joined.
    /// - Throws: HermesClientError `.forbidden` if the caller may not change the group.
    @discardableResult
    public func changeGroup(
        id: GroupID,
        name: String? = nil,
        avatarURL: URL?? = nil,
        isMuted: Bool? = nil,
        isHistoryOpen: Bool? = nil
    ) async throws -> ChatGroup {
        try await group { request in
            request.change.groupID = id.rawValue
            if let name { request.change.name = name }
            if let avatarURL { request.change.avatarURL = avatarURL?.absoluteString ?? "" }
            if let isMuted { request.change.muted = isMuted }
            if let isHistoryOpen { request.change.historyOpen = isHistoryOpen }
        }
    }

    /// Adds members to a group and removes members from it. One call can add at most 499 members and remove
    /// at most 499 members. Only the owner and administrators may do this.
    ///
    /// - Throws: HermesClientError `.forbidden` if the caller may not do this; `.connectionLost` if the connection ends
    ///   before the answer; `.timedOut`; CancellationError.
    public func changeMembers(
        ofGroup id: GroupID,
        adding added: [UserID] = [],
        removing removed: [UserID] = []
    ) async throws {
        try await changeMembers(ofGroup: id) { change in
            change.addUids = added.map(\.rawValue)
            change.removeUids = removed.map(\.rawValue)
        }
    }

    /// Changes a member's role, or mutes the member. Only the owner may change roles. The owner may mute everyone else;
    /// administrators may mute ordinary members.
    ///
    /// - Parameter member: the member's uid with the new ``GroupMember/role`` and ``GroupMember/mutedUntil``; the name
    ///   is ignored.
    /// - Throws: HermesClientError `.forbidden` if the caller may not do this; `.connectionLost` if the connection ends
    ///   before the answer; `.timedOut`; CancellationError.
    public func changeRole(inGroup id: GroupID, of member: GroupMember) async throws {
        try await changeMembers(ofGroup: id) { $0.changeRoles = [member.wire] }
    }

    /// Leaves a group. An owner must first make another member the owner, or dissolve the group instead. If the owner
    /// is the only member, leaving dissolves the group.
    ///
    /// - Throws: HermesClientError `.forbidden` if the caller is the owner and the group has other members;
    ///   `.connectionLost` if the connection ends before the answer; `.timedOut`; CancellationError.
    public func leaveGroup(id: GroupID) async throws {
        var request = Hermes_V1_GroupRequest()
        request.leave.groupID = id.rawValue
        _ = try await result(of: .group(request), replay: .never)
    }

    /// Dissolves a group. Only the owner may do this.
    ///
    /// - Throws: HermesClientError `.forbidden` if the caller is not the owner; `.connectionLost` if the connection
    ///   ends before the answer; `.timedOut`; CancellationError.
    public func dissolveGroup(id: GroupID) async throws {
        var request = Hermes_V1_GroupRequest()
        request.dissolve.groupID = id.rawValue
        _ = try await result(of: .group(request), replay: .never)
    }

    private func group(
        replay: ConnectionDriver<DelimitedLink>.Requests.Replay = .always,
        _ fill: (inout Hermes_V1_GroupRequest) -> Void
    ) async throws -> ChatGroup {
        var request = Hermes_V1_GroupRequest()
        fill(&request)
        let result = try await result(of: .group(request), replay: replay)
        guard case .group(let group) = result.value else { throw Self.unexpected("group") }
        return ChatGroup(group)
    }

    private func changeMembers(
        ofGroup id: GroupID,
        _ fill: (inout Hermes_V1_ChangeMembers) -> Void
    ) async throws {
        var request = Hermes_V1_GroupRequest()
        request.changeMembers.groupID = id.rawValue
        fill(&request.changeMembers)
        _ = try await result(of: .group(request), replay: .never)
    }
}

extension ChatGroup {
    init(_ group: Hermes_V1_Group) {
        id = GroupID(rawValue: group.id)
        name = group.name
        avatarURL = URL(wire: group.avatarURL)
        isMuted = group.muted
        isHistoryOpen = group.historyOpen
        memberCount = Int(clamping: group.memberCount)
        members = group.members.map { GroupMember($0) }
        createdAt = Date(milliseconds: group.createdAtMs)
    }
}

extension GroupMember {
    init(_ member: Hermes_V1_GroupMember) {
        uid = UserID(rawValue: member.uid)
        nickName = member.nickName
        role =
            switch member.role {
            case .member: .member
            case .administrator: .administrator
            case .owner: .owner
            case .unspecified, .UNRECOGNIZED: .unknown
            }
        mutedUntil = Date(knownMilliseconds: member.mutedUntilMs)
    }

    fileprivate var wire: Hermes_V1_GroupMember {
        var member = Hermes_V1_GroupMember()
        member.uid = uid.rawValue
        member.role =
            switch role {
            case .member: .member
            case .administrator: .administrator
            case .owner: .owner
            case .unknown: .unspecified
            }
        member.mutedUntilMs = mutedUntil?.milliseconds ?? 0
        return member
    }
}
