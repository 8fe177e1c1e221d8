// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite("What goes from node to node", .timeLimit(.minutes(1))) struct ClusterTests {
    private static let lossy = MemoryNetwork.Faults(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0)

    @Test func `a commit reaches the devices of other nodes, in one message for each`() async throws {
        let world = try await ClusterWorld(people: 3)
        let (phone, pad) = (try world.attach(2, to: 1), try world.attach(2, "pad", to: 1))
        let sender = try world.attach(1, to: 0)
        try await world.settle()
        let before = world.network.published
        try await world.send("hello", from: sender.principal, to: try user(2), by: 0)
        try await world.settle()
        #expect(world.network.published == before + 1)
        for attachment in [phone, pad] {
            #expect(attachment.calls.map { $0.map(\.seq) } == [[1]])
            #expect(attachment.calls.joined().allSatisfy { $0.acceptedAt == nil }, "of another process's clock")
        }
        #expect(sender.calls.count == 1)
        // Nobody is there: nothing is sent.
        try await world.send("again", from: sender.principal, to: try user(3), by: 0)
        try await world.settle()
        #expect(world.network.published == before + 1)
        await world.shutdown()
    }

    @Test func `a lost message shows in the numbers, and the head is read`() async throws {
        let world = try await ClusterWorld(people: 2)
        let phone = try world.attach(2, to: 1)
        try await world.settle()
        world.network.set(Self.lossy)
        for text in ["a", "b"] { try await world.send(text, from: try principal(1), to: try user(2), by: 0) }
        try await world.settle()
        world.network.set(.none)
        #expect(phone.calls.isEmpty)
        // The beat tells of the last message; then the newest entry is read, and a feed loads those before it.
        await world.pass()
        try await world.settle()
        #expect(phone.calls.map { $0.map(\.seq) } == [[2]])
        await world.pass()
        try await world.settle()
        #expect(phone.calls.count == 1, "read once")
        await world.shutdown()
    }

    @Test func `what was committed before the claim is shown after it`() async throws {
        let world = try await ClusterWorld(people: 2)
        let phone = try world.attach(2, to: 1)
        try await world.send("a", from: try principal(1), to: try user(2), by: 0)
        #expect(phone.calls.isEmpty)
        try await world.settle()
        #expect(phone.calls.map { $0.map(\.seq) } == [[1]])
        await world.shutdown()
    }

    @Test func `the same device on another node replaces the connection`() async throws {
        let world = try await ClusterWorld(people: 1)
        let first = try world.attach(1, to: 0)
        let pad = try world.attach(1, "pad", to: 0)
        try await world.settle()
        let second = try world.attach(1, to: 1)
        try await world.settle()
        #expect(first.ends == [.replaced])
        #expect(second.ends.isEmpty && pad.ends.isEmpty)
        // Late, and of a connection that has no place any more.
        world.cores[0].devices.detach(first)
        try await world.settle()
        let standing = try await world.store.standing(of: [try user(1)], on: try node(1))
        #expect(standing.first?.connections.count == 1)
        #expect(world.reports(of: try user(1)) == [true])
        await world.shutdown()
    }

    @Test func `a lost replacement is found in the record`() async throws {
        let world = try await ClusterWorld(people: 1)
        let first = try world.attach(1, to: 0)
        try await world.settle()
        world.network.set(Self.lossy)
        let second = try world.attach(1, to: 1)
        try await world.settle()
        #expect(first.ends.isEmpty)
        world.network.set(.none)
        await world.pass()
        try await world.settle()
        #expect(first.ends == [.replaced] && second.ends.isEmpty)
        await world.shutdown()
    }

    @Test func `presence is of all nodes, and each transition is told once`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (one, two) = (try user(1), try user(2))
        let watchers = try world.cores.indices.map { try world.attach(1, "w\($0)", to: $0) }
        for (core, watcher) in zip(world.cores, watchers) { core.devices.watch([two], by: watcher) }
        let phone = try world.attach(2, to: 0)
        try await world.settle()
        let pad = try world.attach(2, "pad", to: 1)
        try await world.settle()
        world.cores[0].devices.detach(phone)
        try await world.settle()
        #expect(world.cores.allSatisfy { $0.devices.isOnline(two) && $0.devices.isOnline(one) })
        for watcher in watchers { #expect(watcher.events == [.presence(two, isOnline: true, lastSeen: nil)]) }
        world.cores[1].devices.detach(pad)
        try await world.settle()
        #expect(world.cores.allSatisfy { !$0.devices.isOnline(two) })
        for watcher in watchers {
            #expect(watcher.events.last == .presence(two, isOnline: false, lastSeen: world.time.now()))
            #expect(watcher.events.count == 2)
        }
        #expect(world.reports(of: two) == [true, false])
        await world.shutdown()
    }

    @Test func `an event of the moment reaches devices of other nodes`() async throws {
        let world = try await ClusterWorld(people: 2)
        let phone = try world.attach(2, to: 1)
        let event = EphemeralEvent.command([1])
        #expect(world.cores[0].devices.notify(try user(2), event) == 0)
        try await world.settle()
        #expect(world.cores[0].devices.notify(try user(2), event) == 1)
        try await world.settle()
        #expect(phone.events == [event])
        await world.shutdown()
    }

    @Test func `an account that is disabled, logged out or renamed is so on all nodes`() async throws {
        let world = try await ClusterWorld(people: 3)
        let phones = try world.cores.indices.map { try world.attach(Int32($0) + 1, to: $0) }
        try await world.settle()
        let accounts = world.cores[1].accounts
        try await accounts.setDisabled(try user(1), true)
        _ = try await accounts.changeProfile(of: try user(3), nickName: "Other", avatarURL: nil)
        try await world.settle()
        #expect(phones.map(\.ends) == [[.accountDisabled], [], []])
        #expect(phones[2].principal.nickName.rawValue == "Other")
        try await accounts.revokeTokens(of: try user(3))
        try await world.settle()
        #expect(phones.map(\.ends) == [[.accountDisabled], [], [.revoked]])
        await world.shutdown()
    }

    @Test func `lost ends are asked for, and none is carried out twice`() async throws {
        let world = try await ClusterWorld(people: 2)
        let phone = try world.attach(1, to: 0)
        try await world.settle()
        world.network.set(Self.lossy)
        try await world.cores[1].accounts.revokeTokens(of: try user(1))
        try await world.settle()
        #expect(phone.ends.isEmpty)
        world.network.set(.none)
        await world.pass()
        try await world.settle()
        #expect(phone.ends == [.revoked])
        // It logs in again. Another gap does not bring the old end back.
        let again = try world.attach(1, to: 0)
        try await world.settle()
        world.network.set(Self.lossy)
        try await world.cores[1].accounts.revokeTokens(of: try user(2))
        world.network.set(.none)
        await world.pass()
        try await world.settle()
        #expect(again.ends.isEmpty)
        await world.shutdown()
    }

    @Test func `of ends that are forgotten, everybody logs in again`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (near, far) = (try world.attach(1, to: 1), try world.attach(1, "pad", to: 0))
        try await world.settle()
        world.network.set(Self.lossy)
        let devices = world.cores[1].devices
        for _ in 0...ChangeLog<AccountEnd>.defaultLimit { devices.end(try user(2), .revoked, .all) }
        world.network.set(.none)
        await world.pass()
        try await world.settle()
        #expect(far.ends == [.shuttingDown] && near.ends.isEmpty)
        await world.shutdown()
    }

    @Test func `a core that vanishes leaves no device and no presence behind`() async throws {
        let world = try await ClusterWorld(people: 3)
        let (one, two) = (try user(1), try user(2))
        _ = try world.attach(1, to: 0)
        _ = try world.attach(2, to: 0)
        let elsewhere = try world.attach(2, "pad", to: 1)
        let watcher = try world.attach(3, to: 2)
        world.cores[2].devices.watch([one, two], by: watcher)
        try await world.settle()
        try world.vanish(0)
        await world.pass(ClusterMember.expulsion - .seconds(1))
        try await world.settle()
        #expect(world.cores[2].devices.isOnline(one), "it may come back")
        await world.pass(.seconds(2))
        try await world.settle()
        #expect(!world.cores[1].devices.isOnline(one) && !world.cores[2].devices.isOnline(one))
        #expect(world.cores[2].devices.isOnline(two) && elsewhere.ends.isEmpty)
        #expect(world.reports(of: one) == [true, false])
        #expect(watcher.events.last == .presence(one, isOnline: false, lastSeen: world.time.now()))
        await world.shutdown()
    }

    @Test func `ends that vanished with their core are found in the record`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (disabled, renamed) = (try world.attach(1, to: 1), try world.attach(2, to: 1))
        try await world.settle()
        world.network.set(Self.lossy)
        try await world.cores[0].accounts.setDisabled(try user(1), true)
        _ = try await world.cores[0].accounts.changeProfile(of: try user(2), nickName: "Other", avatarURL: nil)
        try world.vanish(0)
        world.network.set(.none)
        for _ in 0..<10 { await world.pass() }
        try await world.settle()
        #expect(disabled.ends == [.accountDisabled])
        #expect(renamed.ends.isEmpty && renamed.principal.nickName.rawValue == "Other")
        await world.shutdown()
    }

    @Test func `a frozen core that wakes up ends its connections`() async throws {
        let world = try await ClusterWorld(people: 1)
        let phone = try world.attach(1, to: 0)
        try await world.settle()
        let frozen = try #require(world.cores[0].cluster)
        for _ in 0..<10 {
            world.time.advance(by: .seconds(1))
            for core in world.cores[1...] { await core.cluster?.work() }
            world.network.settle()
        }
        #expect(phone.ends.isEmpty && frozen.isMember)
        #expect(!world.cores[1].devices.isOnline(try user(1)))
        await frozen.work()
        #expect(phone.ends == [.shuttingDown] && !frozen.isMember)
        await world.shutdown()
    }

    @Test func `a core that leaves takes its places along at once`() async throws {
        let world = try await ClusterWorld(people: 1)
        _ = try world.attach(1, to: 0)
        try await world.settle()
        #expect(world.cores[1].devices.isOnline(try user(1)))
        await world.cores[0].cluster?.leave()
        world.network.settle()
        #expect(!world.cores[1].devices.isOnline(try user(1)))
        #expect(world.reports(of: try user(1)) == [true, false])
        await world.shutdown()
    }

    private func node(_ number: UInt8) throws -> NodeIdentity {
        NodeIdentity(id: try #require(NodeID(rawValue: number)), epoch: 1)
    }
}
