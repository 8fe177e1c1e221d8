// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A group.
public struct ChatGroup: Hashable, Sendable {
    /// Names it, as in ``Conversation/group(id:)``.
    public var id: UInt32
    /// 1 to 64 characters.
    public var name: String
    /// Where its picture is; empty: it has none.
    public var avatarURL: String
    /// Whether nobody but the owner and administrators may talk.
    public var isMuted: Bool
    /// How many are in it.
    public var memberCount: Int
    /// Who is in it; only from ``HermesClient/HermesClient/group(id:)``.
    public var members: [GroupMember]
    /// In milliseconds since 1970.
    public var createdAtMilliseconds: Int64
}

/// Somebody in a group.
public struct GroupMember: Hashable, Sendable {
    /// What a member may do.
    public enum Role: Hashable, Sendable {
        /// May talk.
        case member
        /// May add, remove and mute members and change the group, too.
        case administrator
        /// May change roles and dissolve the group, too.
        case owner
        /// A role that this version does not know.
        case unknown
    }

    /// Whose.
    public var uid: UInt32
    /// The name for people.
    public var nickName: String
    /// What the member may do.
    public var role: Role
    /// May not talk before this moment, in milliseconds since 1970; 0: may talk.
    public var mutedUntilMilliseconds: Int64
}

// MARK: - Groups
extension HermesClient {
    /// Creates a group; one is its owner.
    ///
    /// Not sent again if the connection is lost meanwhile, for there would be two then; see ``groups()``.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters.
    ///   - uids: who is in it from the start, besides oneself; at most 499.
    public func createGroup(named name: String, with uids: [UInt32] = []) async throws -> ChatGroup {
        try await group(replay: .never) { request in
            request.create.name = name
            request.create.memberUids = uids
        }
    }

    /// A group of one's own, with its members.
    ///
    /// - Throws: HermesClientError `.notFound` if one is in no such group.
    public func group(id: UInt32) async throws -> ChatGroup { try await group { $0.get.groupID = id } }

    /// The groups that one is in, by id, without their members.
    public func groups() async throws -> [ChatGroup] {
        var groups: [ChatGroup] = []
        while true {
            var request = Hermes_V1_GroupRequest()
            request.list.afterGroupID = groups.last?.id ?? 0
            request.list.limit = 500
            let result = try await result(of: .group(request), replay: .always)
            guard case .groups(let page) = result.value else { throw Self.unexpected("groups") }
            groups += page.groups.map { ChatGroup($0) }
            guard page.more, !page.groups.isEmpty else { return groups }
        }
    }

    /// Changes a group; nil stays as it is. For the owner and administrators.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters.
    ///   - avatarURL: at most 1,024 bytes.
    ///   - isMuted: whether nobody but the owner and administrators may talk.
    /// - Throws: HermesClientError `.forbidden` if one may not.
    @discardableResult
    public func changeGroup(
        id: UInt32,
        name: String? = nil,
        avatarURL: String? = nil,
        isMuted: Bool? = nil
    ) async throws -> ChatGroup {
        try await group { request in
            request.change.groupID = id
            if let name { request.change.name = name }
            if let avatarURL { request.change.avatarURL = avatarURL }
            if let isMuted { request.change.muted = isMuted }
        }
    }

    /// Adds and removes members of a group; at most 499 each. For the owner and administrators.
    ///
    /// - Throws: HermesClientError `.forbidden` if one may not.
    public func changeMembers(
        ofGroup id: UInt32,
        adding added: [UInt32] = [],
        removing removed: [UInt32] = []
    ) async throws {
        try await changeMembers(ofGroup: id) { change in
            change.addUids = added
            change.removeUids = removed
        }
    }

    /// Gives a member another role, or mutes it. For the owner; muting for administrators, too.
    ///
    /// - Parameter member: its uid, and how it is to be.
    /// - Throws: HermesClientError `.forbidden` if one may not.
    public func changeRole(inGroup id: UInt32, of member: GroupMember) async throws {
        try await changeMembers(ofGroup: id) { $0.changeRoles = [member.wire] }
    }

    /// Leaves a group; its owner must dissolve it or make somebody else the owner before.
    public func leaveGroup(id: UInt32) async throws {
        var request = Hermes_V1_GroupRequest()
        request.leave.groupID = id
        _ = try await result(of: .group(request), replay: .never)
    }

    /// Ends a group for everybody. For the owner.
    public func dissolveGroup(id: UInt32) async throws {
        var request = Hermes_V1_GroupRequest()
        request.dissolve.groupID = id
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
        ofGroup id: UInt32,
        _ fill: (inout Hermes_V1_ChangeMembers) -> Void
    ) async throws {
        var request = Hermes_V1_GroupRequest()
        request.changeMembers.groupID = id
        fill(&request.changeMembers)
        _ = try await result(of: .group(request), replay: .never)
    }
}

extension ChatGroup {
    init(_ group: Hermes_V1_Group) {
        id = group.id
        name = group.name
        avatarURL = group.avatarURL
        isMuted = group.muted
        memberCount = Int(group.memberCount)
        members = group.members.map { GroupMember($0) }
        createdAtMilliseconds = group.createdAtMs
    }
}

extension GroupMember {
    init(_ member: Hermes_V1_GroupMember) {
        uid = member.uid
        nickName = member.nickName
        role =
            switch member.role {
            case .member: .member
            case .administrator: .administrator
            case .owner: .owner
            case .unspecified, .UNRECOGNIZED: .unknown
            }
        mutedUntilMilliseconds = member.mutedUntilMs
    }

    fileprivate var wire: Hermes_V1_GroupMember {
        var member = Hermes_V1_GroupMember()
        member.uid = uid
        member.role =
            switch role {
            case .member: .member
            case .administrator: .administrator
            case .owner: .owner
            case .unknown: .unspecified
            }
        member.mutedUntilMs = mutedUntilMilliseconds
        return member
    }
}
