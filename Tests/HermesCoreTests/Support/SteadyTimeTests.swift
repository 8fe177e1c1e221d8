// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("Which clock may be believed")
struct SteadyTimeTests {
    private let time = ManualTime()
    private static let day = Duration.seconds(86_400)

    @Test func `clocks that agree are believed`() {
        let steady = SteadyTime(time)
        for _ in 0..<5 {
            time.advance(by: Self.day)
            #expect(steady.now() == time.now())
            steady.look()
            #expect(steady.now() == time.now())
        }
    }

    @Test func `a jump ahead is not believed before it is confirmed`() {
        let steady = SteadyTime(time)
        let start = time.now()
        time.jump(by: Self.day)
        #expect(steady.now() == start, "before anybody has looked")
        for second in 1...599 {
            time.advance(by: .seconds(1))
            steady.look()
            #expect(steady.now() == start.advanced(by: .seconds(second)))
        }
        for _ in 0..<3 {
            time.advance(by: .seconds(1))
            steady.look()
        }
        #expect(steady.now() == time.now())
    }

    @Test
    func `a clock that is ahead for a moment changes nothing`() {
        let steady = SteadyTime(time)
        for _ in 0..<300 {
            time.jump(by: Self.day)
            for _ in 0..<3 {
                time.advance(by: .seconds(1))
                steady.look()
                #expect(steady.now() == time.now().advanced(by: .zero - Self.day))
            }
            time.jump(by: .zero - Self.day)
            time.advance(by: .seconds(60))
            steady.look()
            #expect(steady.now() == time.now())
        }
    }

    @Test func `another jump begins anew`() {
        let steady = SteadyTime(time)
        for _ in 0..<4 {
            time.jump(by: Self.day)
            for _ in 0..<400 {
                time.advance(by: .seconds(1))
                steady.look()
                #expect(steady.now() < time.now())
            }
        }
    }

    @Test func `back is believed at once`() {
        let steady = SteadyTime(time)
        time.jump(by: .zero - Self.day)
        #expect(steady.now() == time.now())
        steady.look()
        // From here on, the earlier time is a jump ahead.
        time.jump(by: Self.day)
        #expect(steady.now() == time.now().advanced(by: .zero - Self.day))
    }

    @Test func `a jump is recorded before it is believed, and again if that fails`() async throws {
        let steady = SteadyTime(time)
        time.advance(by: .seconds(3_600))
        let start = time.now()
        time.jump(by: Self.day)
        var recorded: [ClockJump] = []
        for second in 1...603 {
            time.advance(by: .seconds(1))
            do throws(HermesError) {
                try await steady.look { jump throws(HermesError) in
                    #expect(steady.now() == start.advanced(by: .seconds(second)))
                    recorded.append(jump)
                    guard recorded.count > 2 else { throw HermesError(.storageUnavailable, "the disk is full") }
                }
            } catch {
                #expect(steady.now() == start.advanced(by: .seconds(second)))
            }
        }
        #expect(recorded.count == 3 && steady.now() == time.now())
        let jump = try #require(recorded.last)
        #expect(jump.length == Self.day)
        // The times begin when the clock fell behind, whether it jumped back or the process started with this clock.
        #expect(jump.times.lowerBound == start.advanced(by: .seconds(-3_602)))
        #expect(jump.times.upperBound == start.advanced(by: .seconds(603 + 60)))
    }

    @Test func `a jump concerns what was stored since the clock went back`() throws {
        var clock = SteadyClock(offset: .seconds(1_000))
        #expect(clock.look(offset: .seconds(400), uptime: .seconds(100)) == nil)
        var found: ClockJump?
        for second in 200...800 { found = clock.look(offset: .seconds(1_000), uptime: .seconds(second)) ?? found }
        let jump = try #require(found)
        #expect(jump.length == .seconds(600))
        #expect(jump.times.lowerBound == Timestamp(rawValue: 660_000), "no more than the jump is long")
        #expect(jump.times.upperBound == Timestamp(rawValue: 1_260_000))
        clock.accept(uptime: .seconds(800))
        #expect(clock.offset == .seconds(1_000))
    }

    @Test func `a step back is told once it is confirmed, and until it is done`() async throws {
        let steady = SteadyTime(time)
        time.advance(by: .seconds(3_600))
        var told: [ClockSetback] = []
        func look(seconds: Int, fails: Bool = false) async {
            for _ in 0..<seconds {
                time.advance(by: .seconds(1))
                steady.look()
                do throws(HermesError) {
                    try await steady.takeBack { setback throws(HermesError) in
                        told.append(setback)
                        if fails { throw HermesError(.storageUnavailable, "the disk is full") }
                    }
                } catch {}
            }
        }
        await look(seconds: 10)
        // The clock is set in two steps, and is wrong for a moment in between.
        let start = time.now()
        time.jump(by: .zero - Self.day)
        await look(seconds: 300)
        time.jump(by: Self.day * 3)
        await look(seconds: 2)
        time.jump(by: .zero - Self.day * 3)
        time.jump(by: .seconds(-60))
        await look(seconds: 599)
        #expect(told.isEmpty)
        await look(seconds: 3, fails: true)
        #expect(told.count >= 2)
        await look(seconds: 700)
        let setback = try #require(told.last)
        let (before, tolerance) = (told.count, SteadyClock.tolerance)
        await look(seconds: 700)
        #expect(told.count == before)
        #expect(setback.length == Self.day + .seconds(60))
        #expect(setback.own.contains(start.advanced(by: .zero - Self.day)))
        #expect(!setback.own.contains(start.advanced(by: .zero - Self.day - .seconds(61) - tolerance)))
    }

    @Test func `a step back undoes the last jump of about its length, and concerns only times that are too late`() {
        let (hour, start) = (Duration.seconds(3_600), Timestamp(rawValue: 1_000_000_000_000))
        let end = start.advanced(by: .seconds(600))
        var jumps = ClockJumps()
        for length in [hour, hour * 100, hour * 2] { jumps.add(ClockJump(since: start, end: end, length: length)) }
        let back = end.advanced(by: hour * 3)
        func setback(_ length: Duration) -> ClockSetback {
            ClockSetback(length: length, since: back, now: back.advanced(by: .seconds(600)))
        }
        #expect(setback(hour * 100 + .seconds(20)).undoes(jumps)?.length == hour * 100)
        #expect(setback(hour * 2 - .seconds(20)).undoes(jumps)?.length == hour * 2)
        for length in [hour * 3, .seconds(3_800), .seconds(5)] { #expect(setback(length).undoes(jumps) == nil) }
        let long = setback(hour * 100)
        let jump = ClockJump(since: start, end: end, length: hour * 100)
        #expect(!long.concerns(start, of: jump) && !long.concerns(back, of: jump))
        #expect(long.concerns(start.advanced(by: hour * 100), of: jump), "what the jump has corrected")
        #expect(long.concerns(end.advanced(by: hour * 101), of: jump))
        jumps.remove(jump)
        #expect(long.undoes(jumps) == nil && jumps.all.count == 2)
    }

    @Test func `a stored time is corrected once`() {
        let (hour, start) = (Duration.seconds(3_600), Timestamp(rawValue: 1_000_000_000))
        var jumps = ClockJumps()
        jumps.add(ClockJump(since: start, end: start.advanced(by: .seconds(7_200)), length: hour))
        for minute in stride(from: -10, through: 300, by: 1) {
            let stored = start.advanced(by: .seconds(60 * minute))
            let isBehind = minute >= 61 && minute < 121
            #expect(jumps.correction(of: stored) == (isBehind ? hour : .zero), "\(minute)")
            let corrected = jumps.corrected(stored, storedAt: stored)
            #expect(jumps.correction(of: corrected) == .zero, "\(minute)")
        }
        // This clock was behind twice.
        let second = start.advanced(by: .seconds(3 * 7_200))
        jumps.add(ClockJump(since: start, end: second, length: .seconds(10 * 3_600)))
        let stored = start.advanced(by: .seconds(90 * 60))
        #expect(jumps.correction(of: stored) == hour * 11)
        #expect(jumps.correction(of: stored.advanced(by: hour * 11)) == .zero)
        for _ in 0..<ClockJumps.limit { jumps.add(ClockJump(since: start, end: start, length: hour)) }
        #expect(jumps.all.count == ClockJumps.limit)
    }

    @Test func `a small correction is no jump`() {
        let steady = SteadyTime(time)
        for _ in 0..<100 {
            time.jump(by: .milliseconds(900))
            time.advance(by: .seconds(1))
            #expect(steady.now() == time.now())
            steady.look()
        }
    }

    @Test func `the clock of the start is confirmed later`() {
        let steady = SteadyTime(time)
        #expect(!steady.isConfirmed)
        time.advance(by: SteadyClock.confirmation)
        #expect(steady.isConfirmed)
    }
}
