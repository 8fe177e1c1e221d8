// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Method 5: groups.
extension IMPBConnection {
    func group(_ message: IMPB_Group_cmd, seq: UInt32, from sender: Sender) {
        switch message.cmd {
        case .create:
            guard let request: IMPB_group_create_request = parse(message.body, seq) else { return }
            apply(seq: seq, from: sender) { () throws(HermesError) in
                .create(name: request.name, members: try RequestedIDs.users(request.memberUids))
            }
        case .info:
            guard let request: IMPB_group_target_request = parse(message.body, seq) else { return }
            info(request, seq: seq, from: sender)
        case .list:
            guard let request: IMPB_group_list_request = parse(message.body, seq) else { return }
            groups(request, seq: seq, from: sender)
        case .change:
            guard let request: IMPB_group_change_request = parse(message.body, seq) else { return }
            apply(seq: seq, from: sender) { () throws(HermesError) in
                let change = GroupChange(
                    name: request.hasName ? request.name : nil,
                    avatarURL: request.hasAvartaURL ? request.avartaURL : nil,
                    isMuted: request.hasMuted ? request.muted : nil,
                    isHistoryOpen: request.hasHistoryOpen ? request.historyOpen : nil
                )
                return .change(try IMPBTranslation.group(request.groupID), change)
            }
        case .changeMembers:
            guard let request: IMPB_group_members_request = parse(message.body, seq) else { return }
            apply(seq: seq, from: sender) { () throws(HermesError) in try IMPBTranslation.memberChanges(request) }
        case .leave:
            guard let request: IMPB_group_target_request = parse(message.body, seq) else { return }
            apply(seq: seq, from: sender) { () throws(HermesError) in
                .leave(try IMPBTranslation.group(request.groupID))
            }
        case .dissolve:
            guard let request: IMPB_group_target_request = parse(message.body, seq) else { return }
            apply(seq: seq, from: sender) { () throws(HermesError) in
                .dissolve(try IMPBTranslation.group(request.groupID))
            }
        case .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "group command \(message.cmd.rawValue) has no meaning"))
        }
    }

    private func apply(seq: UInt32, from sender: Sender, _ command: () throws(HermesError) -> GroupCommand) {
        let wanted: GroupCommand
        do throws(HermesError) { wanted = try command() } catch { return fail(seq, error) }
        sender.link.apply(wanted) { [self] result in
            switch (result, wanted) {
            case (.failure(let error), _):
                fail(seq, error)
            case (.success(let group), .create), (.success(let group), .change):
                var answer = IMPB_group_response()
                answer.group = IMPBTranslation.group(group.summary)
                succeed(seq, answer)
            case (.success, .changeMembers), (.success, .leave), (.success, .dissolve):
                succeed(seq)
            }
        }
    }

    private func info(_ request: IMPB_group_target_request, seq: UInt32, from sender: Sender) {
        guard let group = GroupID(rawValue: request.groupID) else {
            return fail(seq, RequestedIDs.badGroup)
        }
        let groups = messenger.groups
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            try await groups.group(group, reader: user)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let found):
                connection.charge(.page(entries: found.group.members.count))
                var answer = IMPB_group_response()
                answer.group = IMPBTranslation.group(found.group, names: found.names)
                succeed(seq, answer)
            }
        }
    }

    private func groups(_ request: IMPB_group_list_request, seq: UInt32, from sender: Sender) {
        let limit = request.limit == 0 ? 100 : Int(min(request.limit, 500))
        let after: GroupID?
        do throws(HermesError) {
            after = try RequestedIDs.place(afterGroup: request.afterGroupID)
        } catch {
            return fail(seq, error)
        }
        let groups = messenger.groups
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            // This reads one more group than requested, to find out whether more follow.
            try await groups.groups(of: user, after: after, limit: limit + 1)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let found):
                connection.charge(.page(entries: found.count))
                succeed(seq, IMPBTranslation.groupList(found, limit: limit))
            }
        }
    }
}
