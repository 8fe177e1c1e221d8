// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Requests that create, change and read groups.
extension NativeConnection {
    func group(_ request: Hermes_V1_GroupRequest, id: UInt64, from sender: Sender) {
        switch request.request {
        case .create, .change, .changeMembers, .leave, .dissolve:
            do throws(HermesError) {
                let command = try NativeTranslation.groupCommand(request)
                apply(command, id: id, from: sender)
            } catch {
                fail(id, error)
            }
        case .get(let selector):
            guard let group = RequestedIDs.group(selector.groupID) else {
                return fail(id, RequestedIDs.badGroup)
            }
            read(group, id: id, from: sender)
        case .list(let list):
            groups(list, id: id, from: sender)
        case nil:
            fail(id, HermesError(.unsupported, "the server does not know this group request"))
        }
    }

    private func apply(_ command: GroupCommand, id: UInt64, from sender: Sender) {
        sender.link.apply(command) { [self] result in
            switch (result, command) {
            case (.failure(let error), _): fail(id, error)
            case (.success(let group), .create), (.success(let group), .change):
                succeed(id, .group(Hermes_V1_Group(group.summary)))
            case (.success, .changeMembers), (.success, .leave), (.success, .dissolve):
                succeed(id)
            }
        }
    }

    private func read(_ group: GroupID, id: UInt64, from sender: Sender) {
        let groups = messenger.groups
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            try await groups.group(group, reader: user)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(let found):
                connection.charge(.page(entries: found.group.members.count))
                var answer = Hermes_V1_Group(found.group.summary)
                answer.members = found.group.members.map { member in
                    NativeTranslation.member(member, name: found.names[member.user] ?? "")
                }
                succeed(id, .group(answer))
            }
        }
    }

    private func groups(_ request: Hermes_V1_ListGroups, id: UInt64, from sender: Sender) {
        let limit = request.limit == 0 ? 100 : Int(min(request.limit, 500))
        let after: GroupID?
        do throws(HermesError) {
            after = try RequestedIDs.place(afterGroup: request.afterGroupID)
        } catch {
            return fail(id, error)
        }
        let groups = messenger.groups
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            // This reads one more group than requested, to find out whether more follow.
            try await groups.groups(of: user, after: after, limit: limit + 1)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(let found):
                connection.charge(.page(entries: found.count))
                var list = Hermes_V1_GroupList()
                list.groups = found.prefix(limit).map { Hermes_V1_Group($0) }
                list.more = found.count > limit
                succeed(id, .groups(list))
            }
        }
    }
}
