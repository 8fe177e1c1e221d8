// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A change of a group by an operator of the server.
package enum GroupAdministration: Sendable, Hashable {
    case remove(UserID)
    case setRole(GroupRole, of: UserID)
    case dissolve

    /// Returns the command with which the owner would make this change; nil if there is nothing to do.
    ///
    /// - Throws: `.notFound` if the account is not a member, `.invalidArgument` if the group would have no owner.
    package func command(for group: Group) throws(HermesError) -> GroupCommand? {
        switch self {
        case .dissolve:
            return .dissolve(group.id)
        case .remove(let user):
            _ = try member(user, of: group, isChanged: true)
            return .changeMembers(group.id, MemberChanges(removed: [user]))
        case .setRole(let role, let user):
            let member = try member(user, of: group, isChanged: role != .owner)
            guard member.role != role else { return nil }
            let change = MemberChanges.Role(user: user, role: role, mutedUntil: member.mutedUntil)
            return .changeMembers(group.id, MemberChanges(roles: [change]))
        }
    }

    private func member(_ user: UserID, of group: Group, isChanged: Bool) throws(HermesError) -> GroupMember {
        guard let member = group.member(user) else {
            throw HermesError(.notFound, "account \(user) is not in this group")
        }
        guard !isChanged || member.role != .owner else {
            throw HermesError(.invalidArgument, "account \(user) owns this group; make another member the owner first")
        }
        return member
    }
}

/// The administration of groups by an operator of the server.
extension GroupService {
    /// The maximum number of attempts at a change. An attempt fails if the group gets another owner meanwhile.
    private static let maxTries = 3
    private static let noSuchGroup = HermesError(.notFound, "there is no such group")

    /// Finds the groups whose names contain a given text. The case of ASCII letters does not matter. The groups are
    /// ascending by id. One call examines a limited number of groups, and does not delay commits.
    ///
    /// - Returns: the groups, and the id after which to continue. The id is nil if there are no more groups to examine.
    package func groups(
        named text: String,
        after id: GroupID?,
        limit: Int
    ) async throws(HermesError) -> (found: [GroupSummary], next: GroupID?) {
        let limit = min(max(1, limit), StoreSettings.maxPageEntries)
        let key = Group.searchKey(text)
        return try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.groups(after: id, named: key, limit: limit)
        }
    }

    /// Returns a group with its members' names.
    ///
    /// - Throws: `.notFound`, `.storageUnavailable`.
    package func group(_ id: GroupID) async throws(HermesError) -> (group: Group, names: [UserID: String]) {
        try await reads.turn(of: .server) { () async throws(HermesError) in
            guard let group = try await store.group(id) else { throw Self.noSuchGroup }
            return (group, try await store.names(of: group.users))
        }
    }

    /// Changes a group with the rights of its owner. No account is charged for the change.
    ///
    /// The notice to the members says that the owner made the change, because a notice must name an account.
    ///
    /// - Returns: the group after the change, without members if it is dissolved.
    /// - Throws: `.notFound` (there is no such group or member), `.invalidArgument` if the group would have no owner,
    ///   and the errors of the committer.
    @discardableResult
    package func administer(_ change: GroupAdministration, in id: GroupID) async throws(HermesError) -> Group {
        var tries = 0
        while true {
            let found = try await reads.turn(of: .server) { () async throws(HermesError) in
                try await store.group(id)
            }
            guard let group = found, let owner = group.members.first(where: { $0.role == .owner }) else {
                throw Self.noSuchGroup
            }
            guard let command = try change.command(for: group) else { return group }
            tries += 1
            do throws(HermesError) {
                return try await commit(command, by: owner.user).group
            } catch {
                // The group may have another owner by now, or may no longer exist.
                guard error.code == .forbidden, tries < Self.maxTries else { throw error }
            }
        }
    }
}
