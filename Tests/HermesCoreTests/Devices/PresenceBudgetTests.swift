// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite struct PresenceBudgetTests {
    private let time = ManualTime()
    private let devices: DeviceRegistry

    init() {
        devices = DeviceRegistry(time: time, shardCount: 4)
    }

    private func attach(_ number: Int32, _ deviceName: String = "phone") throws -> RecordingAttachment {
        let attachment = RecordingAttachment(try principal(number, deviceName))
        devices.attach(attachment)
        return attachment
    }

    /// Lets each account come and go. An account does so at most once a second. So without the budget, each change
    /// would be reported at once.
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
        // Without the budget, there would be 2,000,000 notices.
        let share = PresenceBudget.burst / 8 + 20 * PresenceBudget.rate / 8
        #expect(sum > share / 2 && sum < share + 500)
        #expect(try flap(2_001...2_001, by: .address("192.0.2.2"), [friend]) == 2)
    }

    @Test func `observers hear of each change but those beyond four a second, whoever watches`() throws {
        let reports = Mutex<[Bool]>([])
        devices.presenceChanged.observe { change in reports.withLock { $0.append(change.isOnline) } }
        let watchers = try (0...Int32(PresenceBudget.maxAtOnce)).map { try attach(100 + $0) }
        reports.withLock { $0 = [] }
        for watcher in watchers { devices.watch([try user(2)], by: watcher) }
        for _ in 0..<5 { devices.detach(try attach(2)) }
        #expect(reports.withLock { $0 } == [true, false, true, false])
        time.advance(by: .seconds(1))
        devices.tellLate()
        #expect(reports.withLock { $0 } == [true, false, true, false, false])
        _ = try attach(2)
        #expect(reports.withLock { $0.count } == 6)
    }

    @Test func `observers hear of the last changes without delay at the end, and once`() throws {
        let reports = Mutex<[Bool]>([])
        devices.presenceChanged.observe { change in reports.withLock { $0.append(change.isOnline) } }
        for _ in 0..<2 { devices.detach(try attach(2)) }
        let last = try attach(2)
        #expect(reports.withLock { $0 } == [true, false, true, false])
        devices.tellObservers()
        #expect(reports.withLock { $0 } == [true, false, true, false, true])
        time.advance(by: .seconds(1))
        devices.tellLate()
        devices.tellObservers()
        #expect(reports.withLock { $0.count } == 5)
        withExtendedLifetime(last) {}
    }

    @Test func `all sources together have a budget, whose last quarter is for those that have used nothing`() throws {
        let budget = PresenceBudget(time: time)
        func told(_ source: (Int) -> CommitSource) -> Int {
            (0..<1_000).count { budget.tellsAtOnce(1_000, by: source($0)) } * 1_000
        }
        let seven: (Int) -> CommitSource = { .address("\($0 % 7)") }
        // The last change may exceed the budget.
        #expect(told(seven) == PresenceBudget.burst / 4 * 3 + 1_000)
        #expect(told { .address("new \($0)") } == PresenceBudget.burst / 4 - 1_000)
        #expect(!budget.tellsAtOnce(1, by: .server))
        time.advance(by: .seconds(1))
        #expect(told { _ in .server } == PresenceBudget.rate, "the server has no share")
        time.advance(by: .seconds(1))
        #expect(told { _ in .address("") } == PresenceBudget.rate, "nor have peers whose address is not known")
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
        #expect(devices.tellLate() && watchers[0].events.isEmpty, "their second is not over")
        time.advance(by: .seconds(1))
        var parts = 0
        while devices.tellLate(), parts < 1_000 {
            time.advance(by: DeviceRegistry.lateInterval)
            parts += 1
        }
        // A crowd gets only the notices that are sent in turns, which are 12,500 a second.
        #expect(parts > 290 && parts < 340)
        let expected = Set(flapping.map { EphemeralEvent.presence($0, isOnline: true, lastSeen: nil) })
        #expect(watchers.allSatisfy { Set($0.events) == expected && $0.events.count == 100 })
        withExtendedLifetime(last) {}
    }

    @Test func `few watchers are told of before many, and a crowd has turns of its own`() throws {
        let budget = PresenceBudget(time: time)
        let (crowd, small) = (try user(1), try user(3))
        func add(_ user: UserID, _ watchers: Int, _ address: String) {
            budget.tellLater(of: user, watchers: watchers, isReported: false, by: .address(address))
        }
        add(crowd, 100_000, "a")
        add(small, 1, "a")
        add(try user(2), 500, "a")
        time.advance(by: .seconds(1))
        #expect(budget.next(.fewestWatchers) == small)
        #expect(try budget.next(.fewestWatchers) == user(2))
        #expect(budget.next(.fewestWatchers) == nil, "a crowd comes in turns only")
        #expect(budget.next(.turns) == crowd)
        budget.charge(PresenceBudget.lateBurst + 1, to: .turns)
        add(small, 1, "b")
        time.advance(by: .seconds(1))
        #expect(budget.mayTell(.turns) && budget.mayTell(.fewestWatchers))
        budget.charge(100_000, to: .turns)
        #expect(!budget.mayTell(.turns), "a debt of one order")
        #expect(budget.next(.fewestWatchers) == small)
    }

    @Test func `sources take turns`() throws {
        var line = PresenceLine()
        for number in Int32(1)...5 { line.append(try user(number), watchers: 10, by: .address("a"), now: .zero) }
        line.append(try user(6), watchers: 10, by: .address("b"), now: .zero)
        line.append(try user(1), watchers: 1, by: .address("a"), now: .zero)
        #expect(line.nextInTurn() == nil)
        line.wake(now: .seconds(1))
        var order: [Int32] = []
        while let next = line.nextInTurn() { order.append(Int32(next.rawValue)) }
        #expect(order == [1, 6, 2, 3, 4, 5])
        #expect(line.isEmpty && line.nextOfFewest(atMost: 1_000) == nil)
    }

    @Test func `a source whose users were told in the other order still has its turn`() throws {
        var line = PresenceLine()
        for number in Int32(1)...100 { line.append(try user(number), watchers: 1, by: .address("b"), now: .zero) }
        line.append(try user(200), watchers: 900, by: .address("b"), now: .zero)
        for number in Int32(300)...310 { line.append(try user(number), watchers: 900, by: .address("a"), now: .zero) }
        line.wake(now: .seconds(1))
        for _ in 1...100 { #expect(line.nextOfFewest(atMost: 1) != nil) }
        #expect(line.stale == 100)
        let order = try [user(200), user(300), user(301)]
        #expect([line.nextInTurn(), line.nextInTurn(), line.nextInTurn()] == order)
        #expect(line.stale == 3, "their places among the users with as many watchers")
    }

    @Test(arguments: [false, true]) func `who changes itself does not wait in the line of whoever changed it before`(
        isAwake: Bool
    ) throws {
        var line = PresenceLine()
        for number in Int32(1)...50 { line.append(try user(number), watchers: 2_000, by: .address("a"), now: .zero) }
        if isAwake { line.wake(now: .seconds(1)) }
        line.append(try user(50), watchers: 2_000, by: .address("b"), now: .zero)
        line.wake(now: .seconds(1))
        #expect(try line.nextInTurn() == user(1))
        #expect(try line.nextInTurn() == user(50))
        var count = 2
        while line.nextInTurn() != nil { count += 1 }
        #expect(count == 50 && line.isEmpty)
    }

    @Test func `a crowd is told in parts, and whoever ceases to watch hears no more`() throws {
        let watchers = try (1...Int32(PresenceBudget.maxAtOnce) * 2 + 500).map { try attach($0) }
        let star = try user(5_000)
        for watcher in watchers { devices.watch([star], by: watcher) }
        let first = try attach(5_000)
        time.advance(by: .seconds(1))
        var told: [Int] = []
        var heard: [Int]?
        while devices.tellLate(), told.count < 100 {
            told.append(watchers.reduce(0) { $0 + $1.events.count })
            // Meanwhile, half of the watchers leave, and the user goes offline.
            if heard == nil, told.last == PresenceBudget.maxAtOnce {
                for watcher in watchers.prefix(1_250) { devices.unwatch([star], by: watcher) }
                heard = watchers.prefix(1_250).map { $0.events.count }
                devices.detach(first)
            }
            time.advance(by: DeviceRegistry.lateInterval)
        }
        #expect(heard != nil && zip(told, told.dropFirst()).allSatisfy { $1 - $0 <= 2 * PresenceBudget.maxAtOnce })
        #expect(watchers.prefix(1_250).map { $0.events.count } == heard)
        #expect(
            watchers.dropFirst(1_250).allSatisfy { watcher in
                if case .presence(star, isOnline: false, lastSeen: _)? = watcher.events.last { true } else { false }
            }
        )
    }

    @Test func `who is hidden while others are told is offline in the end`() throws {
        let star = try user(5_000)
        let (one, other) = (try attach(1), try attach(2))
        for watcher in [one, other] { devices.watch([star], by: watcher) }
        // The star is hidden from both watchers before the second watcher is told, whichever of them is told first.
        let isHidden = Atomic(false)
        for watcher in [one, other] {
            watcher.eventArrived.observe { [devices] _ in
                guard !isHidden.exchange(true, ordering: .relaxed) else { return }
                for viewer in [one, other] { devices.hide(star, from: viewer.principal.user) }
            }
        }
        _ = try attach(5_000)
        for watcher in [one, other] {
            #expect(watcher.events.contains(.presence(star, isOnline: true, lastSeen: nil)))
            #expect(watcher.events.last == .presence(star, isOnline: false, lastSeen: nil))
        }
    }

    @Test func `places of users that were told in the other order do not pile up`() throws {
        var line = PresenceLine()
        var now = Duration.zero
        // The line always contains users with few watchers. So the places of the crowd in that order are never reached.
        for _ in 0..<5_000 {
            line.append(try user(1), watchers: 100_000, by: .server, now: now)
            for number in Int32(0)..<3 { line.append(try user(10 + number), watchers: 1, by: .address("a"), now: now) }
            now += .seconds(1)
            line.wake(now: now)
            #expect(line.nextInTurn() != nil && line.nextOfFewest(atMost: 1_000) != nil)
            #expect(line.stale <= PresenceLine.maxStale + 16)
        }
    }
}
