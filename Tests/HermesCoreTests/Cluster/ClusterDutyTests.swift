// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// The work that one core does for all cores, and that another core takes over.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterDutyTests {
    private func onDuty(_ world: ClusterWorld) -> [Int] {
        world.living.filter { world.cores[$0].cluster?.isOnDuty == true }
    }

    private func keepHouse(_ world: ClusterWorld) async throws {
        for index in world.living { try await world.cores[index].housekeeping(now: world.time.now()) }
    }

    private func inboxes(_ world: ClusterWorld, of people: Int32) async throws -> [UInt64] {
        var heads: [UInt64] = []
        for number in 1...people { heads.append(try await world.store.position(of: user(number)).head) }
        return heads
    }

    @Test func `one core is on duty, and the next one once it has vanished`() async throws {
        let world = try await ClusterWorld(people: 1)
        #expect(onDuty(world) == [0])
        try world.vanish(0)
        for _ in 0..<10 { await world.pass() }
        #expect(onDuty(world) == [1])
        await world.cores[1].cluster?.leave()
        #expect(world.cores[1].cluster?.isOnDuty == false)
        await world.pass()
        #expect(world.cores[2].cluster?.isOnDuty == true)
        await world.shutdown()
    }

    @Test func `a push to everyone whose core has vanished reaches everyone`() async throws {
        let world = try await ClusterWorld(people: 30)
        // The cores have begun their housekeeping.
        try await keepHouse(world)
        // The core leaves the push in this state: it is accepted, and some of the recipients have it.
        let push = try world.cores[2].pushes.make(PushContent(title: "news"))
        let job = PushJob(push: push, target: .everyone)
        _ = try world.store.commit(
            [.push(.accept(job, claim: nil)), .push(.fanOut(push.id, limit: 7))],
            now: world.time.now()
        )
        try world.vanish(2)
        try await keepHouse(world)
        try await world.settle()
        #expect(try await inboxes(world, of: 30).reduce(0, +) == 7, "the core may come back")
        for _ in 0..<10 { await world.pass() }
        try await keepHouse(world)
        try await world.settle()
        while try await inboxes(world, of: 30).reduce(0, +) < 30 { await Task.yield() }
        #expect(try await inboxes(world, of: 30) == Array(repeating: 1, count: 30))
        await world.shutdown()
    }

    @Test func `entries are purged by the core on duty alone`() async throws {
        let world = try await ClusterWorld(people: 2)
        let phone = try world.attach(2, to: 1)
        try await world.settle()
        try await world.send("one", from: principal(1), to: user(2), by: 1)
        try await world.settle()
        world.cores[1].inbox.acknowledge(phone.principal, upTo: 1)
        try await world.settle()
        let now = world.time.now()
        for index in 1...2 { #expect(try await world.cores[index].housekeeping(now: now) == 0) }
        #expect(try await world.cores[0].housekeeping(now: now) > 0)
        await world.shutdown()
    }

    @Test func `webhooks that any core stores wake the core that posts them, and the next one once that is gone`()
        async throws
    {
        let world = try await ClusterWorld(people: 1)
        let outboxes = world.cores.map {
            WebhookOutbox(store: world.store, kinds: [.online], limit: 10, time: world.time, cluster: $0.cluster)
        }
        #expect(outboxes.map(\.isPostedHere) == [true, false, false])
        func wakes(_ index: Int, _ body: () async throws -> Void) async throws -> Bool {
            // This uses up a signal that may be left over.
            outboxes[index].stored.signal()
            await outboxes[index].stored.wait()
            try await body()
            let start = ContinuousClock.now
            await outboxes[index].stored.wait(atMost: .seconds(20))
            return start.duration(to: .now) < .seconds(15)
        }
        for core in 0..<3 {
            let isWoken = try await wakes(0) {
                try await outboxes[core].append([.online(user(1))], marks: [:])
                world.network.settle()
            }
            #expect(isWoken)
        }
        let isTakenOver = try await wakes(1) {
            try world.vanish(0)
            for _ in 0..<10 { await world.pass() }
        }
        #expect(isTakenOver && outboxes[1].isPostedHere && !outboxes[2].isPostedHere)
        await world.shutdown()
    }
}
