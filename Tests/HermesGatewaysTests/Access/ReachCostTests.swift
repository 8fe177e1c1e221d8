// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// A client pays for all recipients of the events that its request causes. One table of requests is tested over every
/// protocol.
@Suite(.inTurns, .timeLimit(.minutes(2))) struct ReachCostTests {
    typealias Request = InboxRequestRulesTests.Request

    /// With this limit, a change for many members throttles the client for seconds. A change for a few members does not
    /// throttle.
    private static let unitsPerSecond = 120
    private static let many = 450
    private static let few = 2

    private static func settings() -> GatewaySettings {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = unitsPerSecond
        settings.limits.requestsPerSecondPerAccount = 1_000_000
        settings.limits.requestsPerSecondPerAddress = 1_000_000
        return settings
    }

    /// The changes that cause events, and ann's (1) requests for them in a group with other members. One of the members
    /// is bob (2).
    private static let changes: [(name: String, request: @Sendable (World, [UserID]) async throws -> Request)] = [
        ("create", { _, others in .group(.create(name: "group", members: others)) }),
        ("change", { .group(.change(try await $0.group(of: $1), GroupChange(name: "another"))) }),
        (
            "mute a member",
            { world, others in
                let role = MemberChanges.Role(user: others[0], role: nil, mutedUntil: Timestamp(rawValue: .max))
                return .group(.changeMembers(try await world.group(of: others), MemberChanges(roles: [role])))
            }
        ),
        (
            "remove a member",
            { world, others in
                let change = MemberChanges(removed: [others[1]])
                return .group(.changeMembers(try await world.group(of: others), change))
            }
        ),
        ("leave", { .group(.leave(try await $0.group(of: $1, ownedBy: 2))) }),
        ("dissolve", { .group(.dissolve(try await $0.group(of: $1))) }),
        (
            "recall",
            { world, others in
                let group = try await world.group(of: others)
                return .recall(.group(UInt32(group.rawValue)), try await world.message(to: group).description)
            }
        ),
    ]

    private struct World {
        let server: GatewayHarness

        /// Creates a group of ann and others.
        func group(of others: [UserID], ownedBy owner: UInt32 = 1) async throws -> GroupID {
            let principal = try await server.principal(owner)
            let ann = try await server.principal(1).user
            let members = ([ann] + others).filter { $0 != principal.user }
            return try await server.messenger.groups.apply(.create(name: "group", members: members), by: principal).id
        }

        /// Sends a message of ann.
        func message(to group: GroupID) async throws -> MessageID {
            let content = try MessageText.content("text")
            let draft = MessageDraft(conversation: .group(group), clientID: nil, content: content)
            let ann = try await server.principal(1)
            return try await withCheckedContinuation { continuation in
                server.messenger.messages.send(draft, from: ann) { continuation.resume(returning: $0) }
            }.get().messageID
        }

        /// Opens a new connection of ann over a protocol.
        func asker(_ protocolName: String) async throws -> any InboxRequestRulesTests.Asker {
            switch protocolName {
            case "delimited":
                let client = try await server.delimited()
                _ = try await client.authenticate("ann", device: "delimited")
                return DelimitedAsker(client)
            case "impb":
                let client = try await server.impb()
                _ = try await client.logIn("ann", device: "impb")
                return IMPBAsker(client)
            default:
                return try await MQTTAsker(server, isJSON: protocolName == "mqtt, JSON")
            }
        }

        /// Whether the client's connection is throttled because of the cost of its requests.
        func isThrottled() async throws -> Bool { try await server.throttledCount() > 0 }

        /// Ends the connections, so that each change begins with a full budget.
        func disconnect() async throws {
            for loop in server.environment.loops.all {
                try await loop.eventLoop.submit { for connection in loop.connections { connection.end(.finished) } }
                    .get()
            }
        }
    }

    @Test(arguments: ["delimited", "impb", "mqtt", "mqtt, JSON"])
    func `who causes entries in many inboxes pays for each of them`(_ protocolName: String) async throws {
        let store = MemoryStore(settings: StoreSettings(historyPeriod: .seconds(3_600)))
        let messages = MessageSettings { $0.groupEntriesPerHour = 1_000_000 }
        try await GatewayHarness.with(settings: Self.settings(), store: store, messages: messages) { server in
            for name in ["ann", "bob"] {
                let client = try await server.delimited()
                _ = try await client.register(name)
                try await client.wire.close()
            }
            let world = World(server: server)
            var others = [try await server.principal(2).user]
            for number in 1..<Self.many {
                let name = try NickName("other\(number)")
                let new = NewAccount(nickName: name, password: PasswordHash(phc: "$none$"))
                others.append(try await store.create(new, now: Timestamp(rawValue: 0)).id)
            }
            for (name, request) in Self.changes {
                for count in [Self.few, Self.many] {
                    let request = try await request(world, Array(others.prefix(count)))
                    let asker = try await world.asker(protocolName)
                    #expect(try await asker.ask(request) == .done, "\(name)")
                    #expect(try await world.isThrottled() == (count == Self.many), "\(name) for \(count)")
                    try await world.disconnect()
                }
            }
        }
    }
}

extension Hermes_V1_GroupRequest {
    /// Creates the request that a client sends for a command.
    init(_ command: GroupCommand) {
        self.init()
        switch command {
        case .create(let name, let members):
            create.name = name
            create.memberUids = members.map { UInt32($0.rawValue) }
        case .change(let group, let changes):
            change.groupID = UInt32(group.rawValue)
            if let name = changes.name { change.name = name }
        case .changeMembers(let group, let changes):
            changeMembers.groupID = UInt32(group.rawValue)
            changeMembers.removeUids = changes.removed.map { UInt32($0.rawValue) }
            changeMembers.changeRoles = changes.roles.map { role in
                .with {
                    $0.uid = UInt32(role.user.rawValue)
                    $0.mutedUntilMs = role.mutedUntil.rawValue
                }
            }
        case .leave(let group): leave.groupID = UInt32(group.rawValue)
        case .dissolve(let group): dissolve.groupID = UInt32(group.rawValue)
        }
    }
}

extension IMPB_Group_cmd {
    /// Creates the request that a client sends for a command.
    init(_ command: GroupCommand) throws {
        self.init()
        switch command {
        case .create(let name, let members):
            cmd = .create
            body = try IMPB_group_create_request.with {
                $0.name = name
                $0.memberUids = members.map { UInt32($0.rawValue) }
            }.wireBytes()
        case .change(let group, let changes):
            cmd = .change
            body = try IMPB_group_change_request.with {
                $0.groupID = group.rawValue
                if let name = changes.name { $0.name = name }
            }.wireBytes()
        case .changeMembers(let group, let changes):
            cmd = .changeMembers
            body = try IMPB_group_members_request.with {
                $0.groupID = group.rawValue
                $0.removeUids = changes.removed.map { UInt32($0.rawValue) }
                $0.changeRoles = changes.roles.map { role in
                    .with {
                        $0.uid = UInt32(role.user.rawValue)
                        $0.mutedUntil = role.mutedUntil.rawValue
                    }
                }
            }.wireBytes()
        case .leave(let group):
            cmd = .leave
            body = try IMPB_group_target_request.with { $0.groupID = group.rawValue }.wireBytes()
        case .dissolve(let group):
            cmd = .dissolve
            body = try IMPB_group_target_request.with { $0.groupID = group.rawValue }.wireBytes()
        }
    }
}
