// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("The schedule of hand-offs") struct HandOffScheduleTests {
    private func key(_ number: Int32, _ name: String? = "phone") throws -> HandOffKey {
        HandOffKey(try user(number), try name.map { try device($0) })
    }

    @Test
    func `a key is due at its oldest entry's deadline, once`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .seconds(10))
        schedule.committed(try key(1), upTo: 2, due: .seconds(12))
        schedule.committed(try key(2), upTo: 1, due: .seconds(11))
        #expect(schedule.nextDue == .seconds(10))
        #expect(schedule.takeDue(now: .seconds(9), limit: 10).isEmpty)
        #expect(schedule.takeDue(now: .seconds(20), limit: 1) == [try key(1)])
        #expect(schedule.takeDue(now: .seconds(20), limit: 10) == [try key(2)])
        #expect(schedule.takeDue(now: .seconds(20), limit: 10).isEmpty)
    }

    @Test
    func `an acknowledgement of everything takes it out, one of a part does not`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 3, due: .seconds(10))
        schedule.committed(try key(1, nil), upTo: 3, due: .seconds(10))
        schedule.committed(try key(1, "tablet"), upTo: 3, due: .seconds(10))
        schedule.acknowledged(try user(1), try device("phone"), upTo: 2)
        #expect(schedule.count == 3)
        schedule.acknowledged(try user(1), try device("phone"), upTo: 3)
        #expect(schedule.takeDue(now: .seconds(10), limit: 10) == [try key(1, "tablet")])
    }

    @Test
    func `who goes away waits no longer; who failed waits as long as was said`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .seconds(10))
        schedule.committed(try key(1), upTo: 2, due: .seconds(2))
        #expect(schedule.takeDue(now: .seconds(2), limit: 10) == [try key(1)])
        schedule.settled(try key(1), now: .seconds(3), retryAt: .seconds(60))
        #expect(schedule.attempts(of: try key(1)) == 1)
        schedule.committed(try key(1), upTo: 3, due: .seconds(4))
        #expect(schedule.takeDue(now: .seconds(59), limit: 10).isEmpty)
        #expect(schedule.takeDue(now: .seconds(60), limit: 10) == [try key(1)])
        schedule.settled(try key(1), now: .seconds(61), retryAt: nil)
        #expect(schedule.count == 0)
    }

    @Test(arguments: [false, true])
    func `a new token does not wait for the failures of an earlier one`(isDuringCheck: Bool) throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .zero)
        #expect(schedule.takeDue(now: .zero, limit: 10) == [try key(1)])
        if isDuringCheck { schedule.renewed(try key(1), due: .seconds(10)) }
        schedule.settled(try key(1), now: .seconds(1), retryAt: .seconds(300))
        if !isDuringCheck { schedule.renewed(try key(1), due: .seconds(10)) }
        #expect(schedule.attempts(of: try key(1)) == 0)
        #expect(schedule.takeDue(now: .seconds(10), limit: 10) == [try key(1)])
        // The new token's own failures count.
        schedule.settled(try key(1), now: .seconds(11), retryAt: .seconds(60))
        #expect(schedule.attempts(of: try key(1)) == 1)
        #expect(schedule.takeDue(now: .seconds(59), limit: 10).isEmpty)
    }

    @Test
    func `who found no place is looked at later, and has not failed`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .zero)
        schedule.postponed(try key(1), until: .seconds(90), now: .zero)
        #expect(schedule.takeDue(now: .zero, limit: 10) == [try key(1)], "nobody looked yet")
        // A commit that comes meanwhile does not bring the key back earlier, and does not bring it back twice.
        schedule.committed(try key(1), upTo: 2, due: .seconds(1))
        schedule.postponed(try key(1), until: .seconds(10), now: .zero)
        #expect(schedule.attempts(of: try key(1)) == 0 && schedule.nextDue == .seconds(10))
        #expect(schedule.takeDue(now: .seconds(9), limit: 10).isEmpty)
        #expect(schedule.takeDue(now: .seconds(10), limit: 10) == [try key(1)])
        schedule.settled(try key(1), now: .seconds(11), retryAt: nil)
        #expect(schedule.count == 0)
        schedule.committed(try key(1), upTo: 3, due: .seconds(20))
        schedule.acknowledged(try user(1), try device("phone"), upTo: 3)
        schedule.postponed(try key(1), until: .seconds(30), now: .seconds(11))
        #expect(schedule.count == 0, "it has acknowledged")
    }

    @Test
    func `a new token does not wait for what its device's former token waits for`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .zero)
        #expect(schedule.takeDue(now: .zero, limit: 10) == [try key(1)])
        schedule.renewed(try key(1), due: .seconds(10))
        schedule.postponed(try key(1), until: .seconds(600), now: .seconds(1))
        #expect(schedule.nextDue == .seconds(1))
    }

    @Test
    func `after an overflow there is room again when a quarter is free, however many keys stay`() throws {
        var schedule = HandOffSchedule(capacity: 8)
        for number in 1...9 { schedule.committed(try key(Int32(number)), upTo: 1, due: .zero) }
        #expect(schedule.hasOverflowed && !schedule.hasRoomAfterOverflow)
        for number in 1...2 { schedule.acknowledged(try user(Int32(number)), try device("phone"), upTo: 1) }
        #expect(schedule.count == 6 && schedule.hasRoomAfterOverflow)
        schedule.clearOverflow()
        #expect(!schedule.hasRoomAfterOverflow)
    }

    @Test
    func `keys that only wait for a retry leave half of the room to others`() throws {
        var schedule = HandOffSchedule(capacity: 8)
        for number in 1...8 { schedule.committed(try key(Int32(number)), upTo: 1, due: .zero) }
        let taken = schedule.takeDue(now: .zero, limit: 8)
        #expect(taken.count == 8 && schedule.isCrowded && !schedule.hasDropped)
        for key in taken { schedule.settled(key, now: .zero, retryAt: .seconds(600)) }
        #expect(schedule.count == 4 && schedule.hasDropped && !schedule.hasOverflowed)
        schedule.committed(try key(9), upTo: 1, due: .seconds(1))
        #expect(schedule.takeDue(now: .seconds(1), limit: 8) == [try key(9)])
        #expect(schedule.takeDue(now: .seconds(600), limit: 8).count == 4)
        schedule.clearOverflow()
        #expect(!schedule.hasDropped)
    }

    @Test
    func `of the keys that wait, those are dropped that would wait longest`() throws {
        var schedule = HandOffSchedule(capacity: 4)
        for number in 1...3 { schedule.committed(try key(Int32(number)), upTo: 1, due: .zero) }
        #expect(schedule.takeDue(now: .zero, limit: 8).count == 3)
        schedule.settled(try key(1), now: .zero, retryAt: .seconds(600))
        schedule.postponed(try key(2), until: .seconds(20), now: .zero)
        schedule.postponed(try key(3), until: .seconds(10), now: .zero)
        #expect(schedule.hasDropped)
        #expect(schedule.takeDue(now: .seconds(600), limit: 8) == [try key(3), try key(2)])
    }

    @Test
    func `keys whose service is busy leave half of the room to others, too`() throws {
        var schedule = HandOffSchedule(capacity: 4)
        for number in 1...4 { schedule.committed(try key(Int32(number)), upTo: 1, due: .zero) }
        let taken = schedule.takeDue(now: .zero, limit: 8)
        schedule.settled(taken[0], now: .zero, retryAt: .seconds(600))
        var isBlocked: [Bool] = []
        for key in taken[1...] { isBlocked.append(schedule.blocked(key)) }
        #expect(isBlocked == [true, true, false])
        // The two blocked keys use their half of the room. The service may work again, so the third key is derived
        // again as soon as there is room for it.
        #expect(schedule.count == 2 && schedule.hasDropped && !schedule.hasRoomAfterOverflow)
        schedule.unblocked(2)
        #expect(schedule.hasRoomAfterOverflow)
        for key in taken[1...2] { schedule.settled(key, now: .zero, retryAt: .seconds(600)) }
        #expect(schedule.count == 2)
    }

    @Test
    func `what comes while somebody looks is looked at again; an acknowledgement meanwhile changes nothing`() throws {
        var schedule = HandOffSchedule()
        schedule.committed(try key(1), upTo: 1, due: .zero)
        #expect(schedule.takeDue(now: .zero, limit: 10).count == 1)
        schedule.committed(try key(1), upTo: 2, due: .seconds(10))
        schedule.acknowledged(try user(1), try device("phone"), upTo: 2)
        #expect(schedule.takeDue(now: .seconds(10), limit: 10).isEmpty)
        schedule.settled(try key(1), now: .seconds(1), retryAt: nil)
        #expect(schedule.takeDue(now: .seconds(1), limit: 10) == [try key(1)])
        schedule.settled(try key(1), now: .seconds(1), retryAt: nil)
        #expect(schedule.count == 0)
    }

    @Test
    func `without room it says that something is missing`() throws {
        var schedule = HandOffSchedule(capacity: 2)
        for number in 1...3 { schedule.committed(try key(Int32(number)), upTo: 1, due: .zero) }
        #expect(schedule.count == 2)
        #expect(schedule.hasOverflowed)
        schedule.clearOverflow()
        schedule.committed(try key(1), upTo: 2, due: .zero)
        #expect(!schedule.hasOverflowed)
    }

    @Test
    func `what is acknowledged again and again does not pile up`() throws {
        var schedule = HandOffSchedule()
        for seq in 1...20_000 as ClosedRange<UInt64> {
            schedule.committed(try key(1), upTo: seq, due: .seconds(10))
            schedule.acknowledged(try user(1), try device("phone"), upTo: seq)
        }
        #expect(schedule.count == 0)
        schedule.committed(try key(2), upTo: 1, due: .seconds(5))
        #expect(schedule.takeDue(now: .seconds(10), limit: 10) == [try key(2)])
        #expect(schedule.nextDue == nil)
    }

    @Test
    func `waits grow, are spread, and heed what was asked for`() {
        let backoff = Backoff(base: .seconds(2), limit: .seconds(60))
        #expect(backoff.delay(failures: 1, random: 0) == .seconds(1))
        #expect(backoff.delay(failures: 1, random: 1) == .seconds(2))
        #expect(backoff.delay(failures: 3, random: 1) == .seconds(8))
        #expect(backoff.delay(failures: 100, random: 1) == .seconds(60))
        #expect(backoff.delay(failures: 1, asked: .seconds(30), random: 1) == .seconds(32))
        #expect(backoff.delay(failures: 1, asked: .seconds(1_000_000), random: 1) == .seconds(62))
        #expect(backoff.delay(failures: 0, asked: .seconds(-5), random: 0) == .seconds(1))
    }

    @Test
    func `a service that fails is left alone, longer each time; many failures together count once`() {
        var health = ServiceHealth(backoff: Backoff(base: .seconds(2), limit: .seconds(60)))
        #expect(health.pausedUntil(.apns, now: .zero) == nil)
        for _ in 0..<5 { health.failed(.apns, asked: nil, now: .zero, random: 1) }
        #expect(health.pausedUntil(.apns, now: .zero) == .seconds(2))
        #expect(health.pausedUntil(.fcm, now: .zero) == nil)
        health.failed(.apns, asked: .seconds(9), now: .seconds(1), random: 1)
        #expect(health.pausedUntil(.apns, now: .seconds(2)) == .seconds(10))
        health.failed(.apns, asked: nil, now: .seconds(10), random: 1)
        #expect(health.pausedUntil(.apns, now: .seconds(10)) == .seconds(14))
        health.succeeded(.apns)
        #expect(health.pausedUntil(.apns, now: .seconds(10)) == nil)
    }
}
