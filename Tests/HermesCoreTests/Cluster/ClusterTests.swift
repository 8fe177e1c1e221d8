// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite("What goes from node to node", .inTurns, .timeLimit(.minutes(1))) struct ClusterTests {
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
        // No device of the recipient is connected, so nothing is sent.
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
        // The beat reports the number of the last message. Then the newest entry is read, and a feed loads the entries
        // before it.
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

    @Test func `cores whose clocks differ by minutes stay members, and see that one has gone`() async throws {
        let world = try await ClusterWorld(people: 2, ahead: [.zero, .seconds(-300), .seconds(300)])
        let phones = [try world.attach(1, to: 1), try world.attach(2, to: 2)]
        for _ in 0..<20 { await world.pass() }
        #expect(world.cores.allSatisfy { $0.cluster?.isMember == true })
        #expect(phones.allSatisfy { $0.ends.isEmpty })
        try world.vanish(2)
        for _ in 0..<7 { await world.pass() }
        #expect(world.cores[0].devices.isOnline(try user(2)), "it may come back")
        for _ in 0..<3 { await world.pass() }
        for core in [0, 1] { #expect(!world.cores[core].devices.isOnline(try user(2))) }
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
        // This detachment is late, and the connection has no place in the record any more.
        world.cores[0].devices.detach(first)
        try await world.settle()
        let standing = try await world.store.standing(of: [try user(1)], on: try node(1))
        #expect(standing?.first?.connections.count == 1)
        #expect(world.reports(of: try user(1)) == [true])
        await world.shutdown()
    }

    @Test func `who takes no events and a device are two on all nodes, whatever they are called`() async throws {
        let world = try await ClusterWorld(people: 2)
        let pad = try world.attach(2, "pad", to: 1)
        let viewers = [
            RecordingAttachment(try principal(2, "pad"), takesEvents: false),
            RecordingAttachment(try principal(2, "pad"), takesEvents: false),
        ]
        world.cores[1].devices.attach(viewers[0])
        try await world.settle()
        world.cores[1].devices.detach(viewers[0])
        try await world.settle()
        try await world.send("hello", from: try principal(1), to: try user(2), by: 0)
        try await world.settle()
        #expect(pad.calls.map { $0.map(\.seq) } == [[1]])
        world.cores[2].devices.attach(viewers[1])
        try await world.settle()
        #expect(pad.ends.isEmpty && viewers[1].ends.isEmpty)
        // Both connections count for the presence.
        world.cores[1].devices.detach(pad)
        try await world.settle()
        #expect(world.cores[0].devices.isOnline(try user(2)))
        world.cores[2].devices.detach(viewers[1])
        try await world.settle()
        #expect(!world.cores[0].devices.isOnline(try user(2)))
        #expect(world.reports(of: try user(2)) == [true, false])
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

    @Test func `the list of connected devices has those of all nodes that answer`() async throws {
        let world = try await ClusterWorld(people: 1, devices: ["phone", "pad", "tv"])
        for (index, name) in ["phone", "pad", "tv"].enumerated() { _ = try world.attach(1, name, to: index) }
        let all = Set(try ["phone", "pad", "tv"].map(device))
        for core in world.cores { #expect(await core.devices.connectedDevices(of: try user(1)) == all) }
        world.network.set(.init(lost: 0, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        #expect(await world.cores[1].devices.connectedDevices(of: try user(1)) == [try device("pad")])
        await world.shutdown()
    }

    @Test func `who is blocked on one node sees no presence on any`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (one, two) = (try user(1), try user(2))
        let watcher = try world.attach(1, to: 0)
        _ = try world.attach(2, to: 1)
        try await world.settle()
        world.cores[0].devices.watch([two], by: watcher)
        try await world.cores[2].contacts.apply(.block, to: one, by: try principal(2))
        try await world.settle()
        #expect(watcher.events == [.presence(two, isOnline: false, lastSeen: nil)])
        world.cores[1].devices.hide(two, from: one)
        try await world.settle()
        #expect(watcher.events.count == 1)
        await world.shutdown()
    }

    @Test func `failed logins and registrations count on all nodes`() async throws {
        let world = try await ClusterWorld(people: 1)
        func attempt(_ address: String, on core: Int) async -> HermesError.Code? {
            await code {
                _ = try await world.cores[core].accounts.admit(.token("unknown"), device: nil, address: address)
            }
        }
        for _ in 0..<20 { #expect(await attempt("192.0.2.1", on: 0) == .invalidToken) }
        #expect(await attempt("192.0.2.1", on: 0) == .loginDelayed)
        world.network.settle()
        #expect(await attempt("192.0.2.1", on: 1) == .loginDelayed)
        #expect(await attempt("192.0.2.2", on: 1) == .invalidToken)
        func guess(_ address: String, on core: Int) async -> HermesError.Code? {
            let credential = Credential.password(nickName: "nobody", password: "wrong one")
            return await code {
                _ = try await world.cores[core].accounts.admit(credential, device: nil, address: address)
            }
        }
        for _ in 0..<20 { #expect(await guess("192.0.2.4", on: 0) == .wrongCredentials) }
        world.network.settle()
        #expect(await guess("192.0.2.4", on: 2) == .loginDelayed)
        func register(_ name: String, _ address: String, on core: Int) async -> HermesError.Code? {
            await code {
                _ = try await world.cores[core].accounts.register(
                    nickName: name,
                    password: "correct horse",
                    device: DeviceDescription(id: try device("phone")),
                    address: address
                )
            }
        }
        for number in 0..<60 { #expect(await register("new\(number)", "192.0.2.3", on: 0) == nil) }
        world.network.settle()
        #expect(await register("another", "192.0.2.3", on: 2) == .rateLimited)
        // Registrations of names that are taken count as failures.
        for _ in 0..<20 { #expect(await register("new1", "192.0.2.5", on: 0) == .nameTaken) }
        world.network.settle()
        #expect(await register("other", "192.0.2.5", on: 1) == .loginDelayed)
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
        // The device logs in again. Another gap does not repeat the earlier end.
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

    @Test func `logins by a password or a token that a vanished core made invalid end`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (one, two) = (try user(1), try user(2))
        let password = try #require(try await world.store.find(.id(one))).password
        let revoked = try #require(TokenHash(ofToken: String(repeating: "r", count: AccessToken.bytes)))
        let valid = try #require(TokenHash(ofToken: String(repeating: "v", count: AccessToken.bytes)))
        _ = try await world.store.open(
            DeviceDescription(id: try device("phone")),
            of: two,
            token: valid,
            now: Timestamp(rawValue: 0)
        )
        let rows: [(number: Int32, device: String, shown: ShownProof, ends: [AttachmentEnd])] = [
            (1, "a", .password(password), [.revoked]), (1, "b", .token(revoked), [.revoked]), (1, "c", .other, []),
            (2, "d", .password(password), []), (2, "e", .token(valid), []), (2, "f", .token(revoked), [.revoked]),
        ]
        var attachments: [RecordingAttachment] = []
        var clients: [RecordingConnection] = []
        for row in rows {
            let attachment = try world.attach(row.number, row.device, to: 1)
            attachment.principal.prove(by: row.shown)
            attachments.append(attachment)
            clients.append(try await world.connect(row.number, row.device, shown: row.shown, to: 1))
        }
        try await world.settle()
        world.network.set(Self.lossy)
        try await world.cores[0].accounts.setPassword(of: one, to: "a new password")
        try world.vanish(0)
        world.network.set(.none)
        for _ in 0..<10 { await world.pass() }
        try await world.settle()
        #expect(attachments.map(\.ends) == rows.map(\.ends))
        #expect(clients.map(\.ends) == rows.map(\.ends))
        await world.shutdown()
    }

    @Test func `topic clients of accounts whose ends vanished with their core end, and so do those of a lost core`()
        async throws
    {
        let world = try await ClusterWorld(people: 3)
        var clients: [RecordingConnection] = []
        for number: Int32 in 1...3 { clients.append(try await world.connect(number, "sensor", to: 1)) }
        world.network.set(Self.lossy)
        try await world.cores[0].accounts.setDisabled(try user(1), true)
        _ = try await world.cores[0].accounts.changeProfile(of: try user(2), nickName: "Other", avatarURL: nil)
        try world.vanish(0)
        world.network.set(.none)
        for _ in 0..<10 { await world.pass() }
        #expect(clients.map(\.ends) == [[.accountDisabled], [.accountRenamed], []])
        // Now core 1 itself is lost.
        for _ in 0..<10 { await world.pass(cores: [2]) }
        await world.pass()
        #expect(clients[2].ends == [.shuttingDown])
        await world.shutdown()
    }

    @Test func `the lease is renewed however long the rest takes`() async throws {
        let world = try await ClusterWorld(people: 1)
        let places = GatedPlaces(world.store)
        let node = try await places.join(try #require(NodeID(rawValue: 3)))
        let core = Messenger(
            accountStore: world.store,
            messageStore: world.store,
            socialStore: world.store,
            sessionStore: world.store,
            pushTokenStore: world.store,
            time: world.time,
            bus: world.network.bus(of: node),
            placeStore: places
        )
        try await core.load()
        places.close()
        let member = try #require(core.cluster)
        // Another core joins, so the record must be read.
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await member.run() }
            defer { places.open() }
            _ = try await places.join(try #require(NodeID(rawValue: 4)))
            let before = places.renewals
            let start = ContinuousClock.now
            while places.renewals < before + 3, start.duration(to: .now) < .seconds(20) {
                world.time.advance(by: .seconds(1))
                try await Task.sleep(for: .milliseconds(200))
            }
            #expect(places.renewals >= before + 3)
            #expect(places.waiting > 0, "nothing was under way meanwhile")
            group.cancelAll()
        }
        await core.shutdown()
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

    @Test func `a frozen core that wakes up commits nothing, and its node's next process does`() async throws {
        let world = try await ClusterWorld(people: 2)
        let (ann, bob) = (try principal(1), try user(2))
        for _ in 0..<10 { await world.pass(cores: [1, 2]) }
        #expect(world.cores[0].cluster?.isMember == true, "it does not know yet")
        await #expect(throws: HermesError.self) { try await world.send("late", from: ann, to: bob, by: 0) }
        await #expect(throws: HermesError.self) {
            _ = try await world.cores[0].accounts.setDisabled(bob, true)
        }
        #expect(try await world.store.position(of: bob).head == 0)
        try await world.send("in time", from: ann, to: bob, by: 1)
        let next = world.store.fenced(for: try await world.store.join(try node(0).id))
        #expect(try next.commit([WriteOperation](), now: world.time.now()).isEmpty)
        #expect(try await next.position(of: bob).head == 1)
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

/// A record that does not answer who is online until ``open()`` is called.
private final class GatedPlaces: ForwardingPlaces {
    private struct State {
        var isClosed = false
        var renewals = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let base: MemoryStore
    private let state = Mutex(State())

    init(_ base: MemoryStore) { self.base = base }

    var renewals: Int { state.withLock { $0.renewals } }

    var waiting: Int { state.withLock { $0.waiting.count } }

    func close() { state.withLock { $0.isClosed = true } }

    func open() {
        let waiting = state.withLock { state in
            state.isClosed = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }

    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]? {
        state.withLock { $0.renewals += 1 }
        return try await base.renew(node)
    }

    func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange] {
        await withCheckedContinuation { continuation in
            let isClosed = state.withLock { state in
                if state.isClosed { state.waiting.append(continuation) }
                return state.isClosed
            }
            if !isClosed { continuation.resume() }
        }
        return try await base.online(after: user, limit: limit)
    }
}
