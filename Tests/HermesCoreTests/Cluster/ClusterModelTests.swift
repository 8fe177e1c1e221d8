// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// Clients of three cores act at random, while the bus loses, delays and repeats messages, and a core vanishes.
@Suite("Three cores over one store and one bus", .inTurns, .timeLimit(.minutes(5))) struct ClusterModelTests {
    private static let seedsOfCase: UInt64 = 30
    private static let faults = MemoryNetwork.Faults(
        lost: 20,
        repeated: 15,
        unanswered: 20,
        maxDelayMilliseconds: 2_500
    )

    @Test(arguments: UInt64(0)..<8)
    func `in the end every device has every entry once, and all cores agree`(_ group: UInt64) async throws {
        for seed in group * Self.seedsOfCase..<(group + 1) * Self.seedsOfCase {
            var run = try await ClusterRun(seed: seed, faults: Self.faults)
            try await run.play(steps: 40)
            try await run.finish()
            await run.world.shutdown()
        }
    }
}

/// One run of the model.
private struct ClusterRun {
    let seed: UInt64
    let world: ClusterWorld
    private var random: SplitMix
    private var devices: [RoamingDevice] = []
    /// The watchers, one on each core. Each of them watches all users.
    private var watchers: [RecordingAttachment] = []
    private var messages = 0
    private var renamed: NickName?
    private var isDisabled = false

    private static let people: ClosedRange<Int32> = 1...4
    /// The user who changes the name of the account.
    private static let renamedUser: Int32 = 3
    /// The user whose account the operator disables.
    private static let disabledUser: Int32 = 4

    init(seed: UInt64, faults: MemoryNetwork.Faults) async throws {
        self.seed = seed
        random = SplitMix(state: seed)
        world = try await ClusterWorld(seed: seed, people: 5, devices: ["phone", "pad", "w0", "w1", "w2"])
        for number in Self.people {
            for name in ["phone", "pad"] { devices.append(RoamingDevice(try user(number), try device(name))) }
        }
        for core in world.cores.indices {
            let watcher = try world.attach(5, "w\(core)", to: core)
            world.cores[core].devices.watch(try Self.people.map { try user($0) }, by: watcher)
            watchers.append(watcher)
        }
        world.network.set(faults)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func core() throws -> Int { try #require(world.living.randomElement(using: &random)) }

    private func mayConnect(_ device: RoamingDevice) -> Bool {
        !(isDisabled && device.user.rawValue == Self.disabledUser)
    }

    mutating func play(steps: Int) async throws {
        let vanishing = chance(70) ? Int.random(in: 5..<steps, using: &random) : nil
        let disabling = Int.random(in: 5..<steps, using: &random)
        let renaming = Int.random(in: 5..<steps, using: &random)
        for step in 0..<steps {
            try await act()
            if step == disabling { try await disable() }
            if step == renaming { try await rename() }
            if step == vanishing {
                let core = try core()
                try world.vanish(core)
                for index in devices.indices { devices[index].lost(core) }
            }
            await world.pass(.milliseconds(Int.random(in: 1_000...1_500, using: &random)))
        }
    }

    private mutating func act() async throws {
        let index = Int.random(in: devices.indices, using: &random)
        try await devices[index].pump(world)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            guard mayConnect(devices[index]) else { return }
            let (core, isLeaving) = (try core(), chance(40))
            try await devices[index].connect(to: core, of: world, isLeaving: isLeaving)
        case 3: devices[index].disconnect(from: world)
        case 4..<6: try await devices[index].acknowledge(world)
        default:
            guard let core = devices[index].core, let connection = devices[index].connection else { return }
            messages += 1
            let peer = try user(Int32.random(in: Self.people, using: &random))
            let receipt = try await world.send("m\(messages)", from: connection.principal, to: peer, by: core)
            devices[index].sent(receipt)
        }
    }

    private mutating func disable() async throws {
        let core = try core()
        try await world.cores[core].accounts.setDisabled(try user(Self.disabledUser), true)
        isDisabled = true
    }

    private mutating func rename() async throws {
        let core = try core()
        let account = try await world.cores[core].accounts.changeProfile(
            of: try user(Self.renamedUser),
            nickName: "Renamed",
            avatarURL: nil
        )
        renamed = account.nickName
    }

    // MARK: The end

    mutating func finish() async throws {
        world.network.set(.none)
        try await converge()
        try check(world.living.map { world.cores[$0] })
        // The devices that were away come back.
        for index in devices.indices where !devices[index].isConnected && mayConnect(devices[index]) {
            let core = try core()
            try await devices[index].connect(to: core, of: world, isLeaving: false)
        }
        try await converge()
        try check(world.living.map { world.cores[$0] })
        for device in devices where mayConnect(device) {
            let head = try await world.store.position(of: device.user).head
            #expect(device.isConnected, "seed \(seed): \(device.user) \(device.name) is off")
            #expect(device.entries.count == Int(head), "seed \(seed): \(device.user) \(device.name) lacks entries")
            #expect(device.entries.max() ?? 0 == head, "seed \(seed)")
        }
    }

    private mutating func converge() async throws {
        for _ in 0..<12 {
            await world.pass()
            try await world.settle()
            for index in devices.indices {
                try await devices[index].pump(world)
                try await devices[index].acknowledge(world)
            }
        }
    }

    private func check(_ cores: [Messenger]) throws {
        for device in devices {
            #expect(device.faults.isEmpty, "seed \(seed): \(device.user) \(device.name): \(device.faults)")
            for ghost in device.ghosts {
                let ends = ghost.connection.ends
                #expect(ends.count == 1, "seed \(seed): \(device.user) \(device.name), replaced: \(ends)")
                #expect(ends.allSatisfy { $0 == .replaced || $0 == .accountDisabled }, "seed \(seed): \(ends)")
            }
            let name = device.connection?.principal.nickName
            if let name, let renamed, device.user.rawValue == Self.renamedUser {
                #expect(name.rawValue == renamed.rawValue, "seed \(seed): another name")
            }
        }
        for number in Self.people { try check(user(number), cores) }
    }

    private func check(_ account: UserID, _ cores: [Messenger]) throws {
        let connected = devices.filter { $0.user == account && $0.isConnected }
        let isOnline = !connected.isEmpty
        if isDisabled, account.rawValue == Self.disabledUser { #expect(!isOnline, "seed \(seed): not locked out") }
        for core in cores {
            #expect(core.devices.isOnline(account) == isOnline, "seed \(seed): presence of \(account)")
            let here = connected.filter { device in device.core.map { world.cores[$0] === core } ?? false }
            let attached = Set(core.devices.attachedDevices(of: account))
            #expect(attached == Set(here.map(\.name)), "seed \(seed): devices of \(account)")
        }
        let reports = world.reports(of: account)
        #expect(alternates(reports), "seed \(seed): reports of \(account): \(reports)")
        #expect((reports.last ?? false) == isOnline, "seed \(seed): the last report of \(account)")
        for index in world.living {
            var told: [Bool] = []
            for event in watchers[index].events {
                if case .presence(let user, let isOnline, _) = event, user == account { told.append(isOnline) }
            }
            #expect(alternates(told), "seed \(seed): presence of \(account) told \(told)")
            #expect((told.last ?? false) == isOnline, "seed \(seed): the last that is told of \(account)")
        }
    }

    /// Whether the states alternate, beginning with online.
    private func alternates(_ states: [Bool]) -> Bool {
        states.enumerated().allSatisfy { $0.element == $0.offset.isMultiple(of: 2) }
    }
}
