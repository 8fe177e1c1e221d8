// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite struct PresenceBudgetTests {
    private let time = ManualTime()
    private let devices: DeviceRegistry

    init() {
        let time = time
        devices = DeviceRegistry(time: time, uptime: { time.uptime() }, shardCount: 4)
    }

    private func attach(_ number: Int32, _ deviceName: String = "phone") throws -> RecordingAttachment {
        let attachment = RecordingAttachment(try principal(number, deviceName))
        devices.attach(attachment)
        return attachment
    }

    /// Each account comes and goes once a second at most; so each change would be told at once without the budget.
    ///
    /// - Returns: the notices that the watchers got.
    private func flap(
        _ users: ClosedRange<Int32>,
        by source: CommitSource,
        _ watchers: [RecordingAttachment]
    ) throws -> Int {
        let before = watchers.reduce(0) { $0 + $1.events.count }
        for number in users {
            let attachment = RecordingAttachment(try principal(number, "phone"))
            devices.attach(attachment, by: source)
            devices.detach(attachment, by: source)
        }
        return watchers.reduce(0) { $0 + $1.events.count } - before
    }

    @Test func `one source uses its part of the notices and delays nobody else's`() throws {
        let watchers = try (1...500).map { try attach($0) }
        let flapping = try (1_001...1_100).map { try user($0) }
        for watcher in watchers { devices.watch(flapping, by: watcher) }
        let friend = try attach(2_000)
        devices.watch([try user(2_001)], by: friend)
        let stranger = CommitSource.address("192.0.2.1")
        var sum = 0
        for _ in 0..<20 {
            sum += try flap(1_001...1_100, by: stranger, watchers)
            time.advance(by: .milliseconds(1_000))
        }
        // 2,000,000 notices without the budget.
        let share = PresenceBudget.burst / 8 + 20 * PresenceBudget.rate / 8
        #expect(sum > share / 2 && sum < share + 500)
        #expect(try flap(2_001...2_001, by: .address("192.0.2.2"), [friend]) == 2)
    }

    @Test func `all sources together have a budget, and the server has no share`() throws {
        let budget = PresenceBudget { [time] in time.uptime() }
        var told = 0
        for number in 0..<1_000 where budget.tellsAtOnce(1_000, by: .address("\(number)")) { told += 1_000 }
        #expect(told == PresenceBudget.burst)
        time.advance(by: .seconds(1))
        told = 0
        for _ in 0..<1_000 where budget.tellsAtOnce(1_000, by: .server) { told += 1_000 }
        #expect(told == PresenceBudget.rate)
        time.advance(by: .seconds(1))
        #expect(!budget.tellsAtOnce(PresenceBudget.maxAtOnce + 1, by: .server))
    }

    @Test func `who waits is told of the last state, and all of them in the end`() throws {
        let watchers = try (1...2_000).map { try attach($0) }
        let flapping = try (5_001...5_100).map { try user($0) }
        for watcher in watchers { devices.watch(flapping, by: watcher) }
        for number in Int32(5_001)...5_100 { for _ in 0..<3 { devices.detach(try attach(number)) } }
        let last = try (5_001...5_100).map { try attach($0) }
        #expect(watchers[0].events.isEmpty, "more watchers than are told at once")
        var parts = 0
        time.advance(by: .seconds(1))
        while devices.tellLate(), parts < 1_000 {
            time.advance(by: DeviceRegistry.lateInterval)
            parts += 1
        }
        let expected = 200_000 / PresenceBudget.lateBurst
        #expect(parts > expected - 20 && parts < expected + 20)
        let expectedEvents = Set(flapping.map { EphemeralEvent.presence($0, isOnline: true, lastSeen: nil) })
        #expect(watchers.allSatisfy { Set($0.events) == expectedEvents && $0.events.count == 100 })
        withExtendedLifetime(last) {}
    }

    @Test func `few watchers are told before many, and those that wait longest all the same`() throws {
        let budget = PresenceBudget { [time] in time.uptime() }
        // A crowd waits longest; newcomers with few watchers come all the time.
        let newcomers: [(watchers: Int, since: UInt64)] = (0..<100).map { (20, 2 + $0) }
        let isTold = budget.tellsLate([(10_000, 1)] + newcomers)
        #expect(isTold[0] && isTold.count(where: { $0 }) > 30)
        #expect(budget.tellsLate([(10_000, 1), (1, 2)]) == [false, false])
        time.advance(by: .seconds(1))
        #expect(budget.tellsLate([(10_000, 1), (1, 2)]) == [true, true])
    }
}
