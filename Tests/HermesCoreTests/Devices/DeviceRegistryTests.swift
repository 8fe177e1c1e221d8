// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Synchronization
import Testing

@Suite struct DeviceRegistryTests {
    private let time = ManualTime()
    private let devices: DeviceRegistry

    init() { devices = DeviceRegistry(time: time, shardCount: 4) }

    private func attach(_ number: Int32, _ deviceName: String = "phone") throws -> RecordingAttachment {
        let attachment = RecordingAttachment(try principal(number, deviceName))
        devices.attach(attachment)
        return attachment
    }

    @Test func `the same device replaces and others live side by side`() throws {
        let first = try attach(1)
        let pad = try attach(1, "pad")
        let second = try attach(1)
        #expect(first.ends == [.replaced])
        #expect(pad.ends.isEmpty && second.ends.isEmpty)
        #expect(devices.attachedDevices(of: try user(1)).map(\.rawValue) == ["phone", "pad"])
        devices.detach(first)
        #expect(devices.attachments(of: try user(1)).count == 2)
        devices.attach(second)
        #expect(second.ends.isEmpty)
        #expect(devices.count == 2)
        devices.detach(second)
        devices.detach(pad)
        #expect(!devices.isOnline(try user(1)))
        devices.detach(pad)
        #expect(devices.count == 0)
    }

    @Test func `who asked earlier does not replace who asked later`() throws {
        let earlier = RecordingAttachment(try principal(1, "phone"))
        let later = try attach(1)
        devices.setResting(true, later)
        devices.attach(earlier)
        #expect(earlier.ends == [.replaced] && later.ends.isEmpty)
        #expect(try devices.attachments(of: user(1)).map { ObjectIdentifier($0) } == [ObjectIdentifier(later)])
        #expect(try devices.awakeDevices(of: user(1)).isEmpty)
        devices.detach(earlier)
        #expect(devices.isOnline(try user(1)))
        devices.detach(later)
        #expect(!devices.isOnline(try user(1)))
        // No later connection prevents an attachment now.
        let again = RecordingAttachment(try principal(1, "phone"))
        devices.attach(again)
        #expect(again.ends.isEmpty)
    }

    @Test func `who takes no events and a device are two, whatever they are called`() throws {
        let viewer = RecordingAttachment(try principal(1, "liveroom"), takesEvents: false)
        devices.attach(viewer)
        let device = try attach(1, "liveroom")
        #expect(try viewer.ends.isEmpty && devices.attachments(of: user(1)).count == 2)
        let second = RecordingAttachment(try principal(1, "liveroom"), takesEvents: false)
        devices.attach(second)
        #expect(viewer.ends == [.replaced] && device.ends.isEmpty)
        let other = try attach(1, "liveroom")
        #expect(device.ends == [.replaced] && second.ends.isEmpty && other.ends.isEmpty)
    }

    @Test func `ends those that match`() throws {
        let phone = try attach(1)
        let pad = try attach(1, "pad")
        let other = try attach(2)
        let phoneID = try device("phone")
        devices.end(try user(1), .revoked) { $0.device == phoneID }
        #expect(phone.ends == [.revoked])
        #expect(pad.ends.isEmpty)
        devices.end(try user(1), .accountDisabled) { _ in true }
        #expect(phone.ends == [.revoked])
        #expect(pad.ends == [.accountDisabled])
        #expect(other.ends.isEmpty)
        #expect(devices.count == 1)
    }

    @Test func `attachments are counted as they come, replace each other and go`() throws {
        var generator = SplitMix(state: 7)
        var known: [RecordingAttachment] = []
        let numbers = Array(Int32(1)...8)
        let users = try numbers.map { try user($0) }
        let phone = try device("phone")
        let watcher = try attach(100)
        for _ in 0..<1_000 {
            let place = Int.random(in: users.indices, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1, 2:
                let name = ["phone", "pad"].randomElement(using: &generator) ?? "phone"
                let isDevice = Bool.random(using: &generator)
                known.append(RecordingAttachment(try principal(numbers[place], name), takesEvents: isDevice))
                if let attachment = known.randomElement(using: &generator) { devices.attach(attachment) }
            case 3, 4:
                if let attachment = known.randomElement(using: &generator) { devices.detach(attachment) }
            default:
                devices.watch([users[place]], by: watcher)
                devices.end(users[place], .revoked) { $0.device == phone }
            }
            let attached = users.reduce(1) { $0 + devices.attachments(of: $1).count }
            #expect(devices.count == attached)
        }
    }

    @Test func `of one who comes and goes all the time, watchers hear the last`() throws {
        let watcher = try attach(1)
        let flapping = try user(2)
        devices.watch([flapping], by: watcher)
        for _ in 1...50 { devices.detach(try attach(2)) }
        let last = try attach(2)
        #expect(watcher.events.count == DeviceRegistry.maxToldPerSecond)
        devices.tellLate()
        #expect(watcher.events.count == DeviceRegistry.maxToldPerSecond)
        time.advance(by: .seconds(1))
        devices.tellLate()
        #expect(watcher.events.count == DeviceRegistry.maxToldPerSecond + 1)
        #expect(watcher.events.last == .presence(flapping, isOnline: true, lastSeen: nil))
        time.advance(by: .seconds(1))
        devices.tellLate()
        #expect(watcher.events.count == DeviceRegistry.maxToldPerSecond + 1)
        time.advance(by: .seconds(1))
        devices.detach(last)
        #expect(watcher.events.last == .presence(flapping, isOnline: false, lastSeen: time.now()))
    }

    @Test func `while a watcher's loop is behind, its user is told of later, with the time of the change`() throws {
        let watcher = try attach(1)
        let user = try user(2)
        devices.watch([user], by: watcher)
        watcher.isBehind = true
        devices.detach(try attach(2))
        let left = time.now()
        time.advance(by: .seconds(1))
        #expect(devices.tellLate())
        #expect(watcher.events.isEmpty)
        watcher.isBehind = false
        #expect(devices.tellLate(), "its second is not over")
        time.advance(by: .seconds(1))
        #expect(!devices.tellLate())
        #expect(watcher.events == [.presence(user, isOnline: false, lastSeen: left)])
        time.advance(by: .seconds(1))
        devices.tellLate()
        #expect(watcher.events.count == 1)
    }

    @Test func `notifies all devices`() throws {
        let phone = try attach(1)
        let pad = try attach(1, "pad")
        let event = EphemeralEvent.signal(from: try user(2), device: try device("x"), payload: [1])
        #expect(devices.notify(try user(1), event) == 2)
        #expect(devices.notify(try user(2), event) == 0)
        #expect(phone.events == [event] && pad.events == [event])
    }

    @Test func `who leaves tells whom it watched, and hears of nobody after that`() throws {
        let watcher = try attach(1)
        let users = try (2...40).map { try user($0) }
        devices.watch(users, by: watcher)
        #expect(devices.watchedCount(by: watcher) == 39)
        devices.unwatch([users[0]], by: watcher)
        let (told, watched) = devices.leave(watcher)
        #expect(told == 0 && Set(watched) == Set(users.dropFirst()))
        #expect(devices.watchedCount(by: watcher) == 0)
        devices.unwatch(watched, by: watcher)
        _ = try attach(3)
        #expect(watcher.events.isEmpty)
    }

    /// Thousands of connections of a stranger may watch the same accounts, and leave at the same time.
    @Test func `one of thousands of watchers leaves as quickly as one of a few`() throws {
        let users = try (1...40).map { try user($0) }
        func time(_ count: Int32, of registry: DeviceRegistry) throws -> Duration {
            let watchers = try (0..<count).map { RecordingAttachment(try principal(100 + $0, "phone")) }
            for watcher in watchers {
                registry.attach(watcher)
                registry.watch(users, by: watcher)
            }
            return ContinuousClock().measure { for watcher in watchers.suffix(100) { registry.detach(watcher) } }
        }
        let pairs = try (0..<3).map { _ in
            (
                try time(100, of: DeviceRegistry(time: self.time)),
                try time(4_000, of: DeviceRegistry(time: self.time))
            )
        }
        // A search among all watchers would take about forty times as long.
        #expect(pairs.contains { $1 < $0 * 8 }, "\(pairs)")
    }

    @Test func `watchers hear of presence`() throws {
        let watcher = try attach(1)
        let watched = try user(2)
        devices.watch([watched], by: watcher)
        let phone = try attach(2)
        let pad = try attach(2, "pad")
        devices.detach(phone)
        time.advance(by: .seconds(5))
        devices.detach(pad)
        let offline = EphemeralEvent.presence(watched, isOnline: false, lastSeen: time.now())
        #expect(watcher.events == [.presence(watched, isOnline: true, lastSeen: nil), offline])
        devices.unwatch([watched], by: watcher)
        _ = try attach(2)
        #expect(watcher.events.count == 2)
    }

    @Test
    func `who comes or goes learns how many were told, to pay for them`() throws {
        for number in Int32(10)..<15 { devices.watch([try user(2)], by: try attach(number)) }
        let phone = RecordingAttachment(try principal(2))
        let pad = RecordingAttachment(try principal(2, "pad"))
        #expect(devices.attach(phone) == 5)
        #expect(devices.attach(pad) == 0)
        #expect(devices.detach(phone) == 0)
        #expect(devices.detach(pad) == 5)
    }

    @Test func `a replaced connection is not offline`() throws {
        let watcher = try attach(1)
        devices.watch([try user(2)], by: watcher)
        let first = try attach(2)
        _ = try attach(2)
        devices.detach(first)
        #expect(watcher.events.count == 1)
    }

    @Test func `watchers that leave are forgotten`() throws {
        let watcher = try attach(1)
        devices.watch([try user(2)], by: watcher)
        devices.detach(watcher)
        devices.watch([try user(2)], by: watcher)
        _ = try attach(2)
        #expect(watcher.events.isEmpty)
        let replaced = try attach(3)
        devices.watch([try user(4)], by: replaced)
        _ = try attach(3)
        _ = try attach(4)
        #expect(replaced.events.isEmpty)
    }

    @Test func `who begins to watch while it leaves is forgotten, too`() throws {
        let time = HookedTime()
        let devices = DeviceRegistry(time: time, shardCount: 4)
        weak var gone: RecordingAttachment?
        do {
            let watcher = RecordingAttachment(try principal(1))
            gone = watcher
            devices.attach(watcher)
            let watched = try user(2)
            time.atNextReading { devices.watch([watched], by: watcher) }
            devices.unwatch(devices.leave(watcher).watched, by: watcher)
            devices.attach(RecordingAttachment(try principal(2)))
            #expect(watcher.events.isEmpty)
        }
        let isGone = gone == nil
        #expect(isGone)
    }

    @Test func `watching is bounded`() throws {
        let watcher = try attach(1)
        devices.watch(try (2...1500).map(user), by: watcher)
        _ = try attach(1001)
        _ = try attach(1002)
        #expect(watcher.events.count == 1)
        devices.unwatch([try user(2)], by: watcher)
        devices.watch([try user(1003)], by: watcher)
        _ = try attach(1003)
        #expect(watcher.events.count == 2)
    }

    @Test func `watching is bounded over several requests`() throws {
        let watcher = try attach(1)
        for first in [Int32(2), 602, 1_202] {
            devices.watch(try (first..<first + 600).map(user), by: watcher)
        }
        #expect(devices.watchedCount(by: watcher) == 1_000)
        let (known, late) = (try user(2), try user(1_500))
        #expect(devices.watch([known], by: watcher).isEmpty)
        #expect(devices.watch([late], by: watcher).isEmpty)
        devices.unwatch([known], by: watcher)
        #expect(devices.watch([late], by: watcher) == [late])
        #expect(devices.watchedCount(by: watcher) == 1_000)
    }

    @Test func `the last presence is right whatever the order`() async throws {
        let watcher = try attach(1)
        let watched = try user(2)
        devices.watch([watched], by: watcher)
        let principals = try (0..<4).map { try principal(2, "d\($0)") }
        await withTaskGroup(of: Void.self) { group in
            for principal in principals {
                group.addTask { [devices] in
                    for _ in 0..<500 {
                        let attachment = RecordingAttachment(principal)
                        devices.attach(attachment)
                        devices.detach(attachment)
                    }
                }
            }
        }
        time.advance(by: .seconds(1))
        devices.tellLate()
        guard case .presence(watched, let isOnline, _)? = watcher.events.last else {
            Issue.record("nothing was heard")
            return
        }
        #expect(isOnline == devices.isOnline(watched))
        #expect(!isOnline)
    }
}

/// A clock that stands still, and calls a function once when it is read.
private final class HookedTime: TimeSource {
    private let base = ManualTime()
    private let hook = Mutex<(@Sendable () -> Void)?>(nil)

    func atNextReading(_ body: @escaping @Sendable () -> Void) { hook.withLock { $0 = body } }

    func now() -> Timestamp {
        let body = hook.withLock { hook in
            defer { hook = nil }
            return hook
        }
        body?()
        return base.now()
    }

    func uptime() -> Duration { base.uptime() }
}
