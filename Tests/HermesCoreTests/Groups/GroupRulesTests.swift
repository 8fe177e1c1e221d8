// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct GroupRulesTests {
    private static let now = Timestamp(rawValue: 1_000)

    /// Returns a group: user 1 owns it, users 2 and 3 are administrators, and users 4 and 5 are members.
    private func group() throws -> Group {
        let id = try #require(GroupID(rawValue: 7))
        let roles: [GroupRole] = [.owner, .administrator, .administrator, .member, .member]
        let members = try zip(1..., roles).map { GroupMember(user: try user(Int32($0.0)), role: $0.1) }
        return Group(GroupSummary(id: id, name: "g", memberCount: 0, createdAt: Self.now), members: members)
    }

    /// Returns the roles after a command, in the order of the users, or the refusal.
    private func result(
        _ command: (GroupID) throws -> GroupCommand,
        by number: Int32
    ) throws -> (roles: [GroupRole], told: [GroupEvent.Kind], refusal: HermesError.Code?) {
        let group = try group()
        do {
            let outcome = try group.applying(try command(group.id), by: try user(number), lastSeq: 0)
            return (outcome.group.members.map(\.role), outcome.notices.map(\.event.kind), nil)
        } catch let error as HermesError {
            return ([], [], error.code)
        }
    }

    private func changes(
        add: [Int32] = [],
        remove: [Int32] = [],
        role: (Int32, GroupRole?, Int64)? = nil
    ) -> (GroupID) throws -> GroupCommand {
        { id in
            let roles = try role.map {
                [MemberChanges.Role(user: try user($0.0), role: $0.1, mutedUntil: Timestamp(rawValue: $0.2))]
            }
            return .changeMembers(
                id,
                MemberChanges(added: try add.map(user), removed: try remove.map(user), roles: roles ?? [])
            )
        }
    }

    @Test func `created by its owner`() throws {
        let id = try #require(GroupID(rawValue: 1))
        let outcome = try Group.created(
            id,
            name: "g",
            members: [try user(3), try user(2), try user(3), try user(1)],
            by: try user(2),
            now: Self.now
        )
        #expect(outcome.group.users.map(\.rawValue) == [1, 2, 3])
        #expect(outcome.group.members.map(\.role) == [.member, .owner, .member])
        #expect(outcome.group.summary.memberCount == 3)
        #expect(outcome.notices.map(\.recipients) == [outcome.group.users])
    }

    @Test func `five hundred and no more`() throws {
        let id = try #require(GroupID(rawValue: 1))
        let others = try (2...500).map { try user($0) }
        let full = try Group.created(id, name: "g", members: others, by: try user(1), now: Self.now).group
        #expect(full.members.count == 500)
        #expect(throws: HermesError.self) {
            try Group.created(id, name: "g", members: others + [try user(501)], by: try user(1), now: Self.now)
        }
        let swap = MemberChanges(added: [try user(501)], removed: [try user(500)])
        #expect(try full.applying(.changeMembers(id, swap), by: try user(1), lastSeq: 0).group.members.count == 500)
        #expect(throws: HermesError.self) {
            try full.applying(.changeMembers(id, MemberChanges(added: [try user(501)])), by: try user(1), lastSeq: 0)
        }
    }

    @Test(arguments: [(1, nil), (2, nil), (4, .forbidden), (9, .forbidden)] as [(Int32, HermesError.Code?)])
    func `administrators change the group`(_ actor: Int32, _ refusal: HermesError.Code?) throws {
        #expect(try result({ .change($0, GroupChange(name: "h")) }, by: actor).refusal == refusal)
        #expect(try result(changes(add: [6]), by: actor).refusal == refusal)
        #expect(try result(changes(remove: [5]), by: actor).refusal == refusal)
        #expect(try result(changes(role: (5, nil, 99)), by: actor).refusal == refusal)
    }

    @Test(
        arguments: [
            (1, 2, nil), (1, 5, nil), (2, 1, .forbidden), (2, 3, .forbidden), (2, 5, nil), (2, 2, .invalidArgument),
            (1, 1, .invalidArgument),
        ] as [(Int32, Int32, HermesError.Code?)]
    )
    func `removed by those above`(_ actor: Int32, _ target: Int32, _ refusal: HermesError.Code?) throws {
        let result = try result(changes(remove: [target]), by: actor)
        #expect(result.refusal == refusal)
        if refusal == nil { #expect(result.told == [.membersRemoved]) }
    }

    @Test(
        arguments: [
            (1, 4, .administrator, nil), (1, 2, .member, nil), (2, 4, .administrator, .forbidden),
            (2, 1, .member, .forbidden), (2, 2, .owner, .invalidArgument), (1, 1, .member, .invalidArgument),
            (1, 9, .member, .notFound), (4, 5, .administrator, .forbidden),
        ] as [(Int32, Int32, GroupRole, HermesError.Code?)]
    )
    func `roles are the owners`(
        _ actor: Int32,
        _ target: Int32,
        _ role: GroupRole,
        _ refusal: HermesError.Code?
    ) throws {
        let result = try result(changes(role: (target, role, 0)), by: actor)
        #expect(result.refusal == refusal)
        if refusal == nil { #expect(result.roles[Int(target) - 1] == role) }
    }

    @Test func `one owner always`() throws {
        let handedOn = try result(changes(role: (4, .owner, 0)), by: 1)
        #expect(handedOn.roles == [.administrator, .administrator, .administrator, .owner, .member])
        // A user who has handed the group on has no more rights as its owner, not even within the same request.
        let twice = MemberChanges(roles: [
            MemberChanges.Role(user: try user(4), role: .owner), MemberChanges.Role(user: try user(5), role: .owner),
        ])
        #expect(try result({ .changeMembers($0, twice) }, by: 1).refusal == .forbidden)
    }

    @Test func `leaving and dissolving`() throws {
        let left = try result({ .leave($0) }, by: 5)
        #expect(left.roles.count == 4)
        #expect(left.told == [.membersRemoved])
        #expect(try result({ .leave($0) }, by: 1).refusal == .forbidden)
        #expect(try result({ .leave($0) }, by: 9).refusal == .forbidden)
        for (actor, refusal) in [(1, nil), (2, .forbidden), (4, .forbidden), (9, .forbidden)]
            as [(Int32, HermesError.Code?)]
        {
            #expect(try result({ .dissolve($0) }, by: actor).refusal == refusal)
        }
        let id = try #require(GroupID(rawValue: 1))
        let alone = try Group.created(id, name: "g", members: [], by: try user(1), now: Self.now).group
        let outcome = try alone.applying(.leave(id), by: try user(1), lastSeq: 0)
        #expect(outcome.isDissolved)
        #expect(outcome.notices.map(\.event.kind) == [.dissolved])
    }

    @Test func `who is told what`() throws {
        let group = try group()
        let all = MemberChanges(
            added: [try user(6), try user(5)],
            removed: [try user(4), try user(8)],
            roles: [MemberChanges.Role(user: try user(5), role: nil, mutedUntil: Timestamp(rawValue: 5_000))]
        )
        let notices = try group.applying(.changeMembers(group.id, all), by: try user(1), lastSeq: 0).notices
        #expect(notices.map(\.event.kind) == [.membersRemoved, .membersAdded, .changed])
        #expect(notices.map { $0.event.users.map(\.rawValue) } == [[4], [6], []])
        #expect(
            notices.map { $0.recipients.map(\.rawValue) } == [[1, 2, 3, 5, 6, 4], [1, 2, 3, 5, 6], [1, 2, 3, 5, 6]]
        )
        #expect(notices.allSatisfy { $0.event.group.memberCount == 5 })
        #expect(
            try group.applying(.change(group.id, GroupChange(name: "g")), by: try user(1), lastSeq: 0).notices == []
        )
        let both = MemberChanges(added: [try user(4)], removed: [try user(4)])
        #expect(throws: HermesError.self) {
            try group.applying(.changeMembers(group.id, both), by: try user(1), lastSeq: 0)
        }
    }

    @Test func `who may talk`() throws {
        func talks(_ group: Group, _ number: Int32, at time: Int64 = 1_000) throws -> [Int32]? {
            try? group.recipients(ofMessageFrom: try user(number), now: Timestamp(rawValue: time)).map(\.rawValue)
        }
        let open = try group()
        #expect(try talks(open, 4) == [4, 1, 2, 3, 5])
        #expect(try talks(open, 9) == nil)
        let closed = try open.applying(.change(open.id, GroupChange(isMuted: true)), by: try user(1), lastSeq: 0).group
        #expect(try talks(closed, 4) == nil)
        #expect(try talks(closed, 2) == [2, 1, 3, 4, 5])
        let until = MemberChanges(roles: [
            MemberChanges.Role(user: try user(4), role: nil, mutedUntil: Timestamp(rawValue: 1_001))
        ])
        let muted = try open.applying(.changeMembers(open.id, until), by: try user(2), lastSeq: 0).group
        #expect(try talks(muted, 4) == nil)
        #expect(try talks(muted, 4, at: 1_001) == [4, 1, 2, 3, 5])
    }
}
