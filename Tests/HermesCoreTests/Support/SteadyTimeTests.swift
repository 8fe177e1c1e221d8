// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("Which clock may be believed")
struct SteadyTimeTests {
    private let time = ManualTime()
    private static let day = Duration.seconds(86_400)

    @Test func clocksThatAgreeAreBelieved() {
        let steady = SteadyTime(time)
        for _ in 0..<5 {
            time.advance(by: Self.day)
            #expect(steady.now() == time.now())
            steady.look()
            #expect(steady.now() == time.now())
        }
    }

    @Test func aJumpAheadIsNotBelievedBeforeItIsConfirmed() {
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

    @Test("A clock that is ahead for a moment changes nothing")
    func aClockThatIsAheadForAMomentChangesNothing() {
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

    @Test func anotherJumpBeginsAnew() {
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

    @Test func backIsBelievedAtOnce() {
        let steady = SteadyTime(time)
        time.jump(by: .zero - Self.day)
        #expect(steady.now() == time.now())
        steady.look()
        // From here on the time before is a jump ahead.
        time.jump(by: Self.day)
        #expect(steady.now() == time.now().advanced(by: .zero - Self.day))
    }

    @Test func aSmallCorrectionIsNoJump() {
        let steady = SteadyTime(time)
        for _ in 0..<100 {
            time.jump(by: .milliseconds(900))
            time.advance(by: .seconds(1))
            #expect(steady.now() == time.now())
            steady.look()
        }
    }

    @Test func theClockOfTheStartIsConfirmedLater() {
        let steady = SteadyTime(time)
        #expect(!steady.isConfirmed)
        time.advance(by: SteadyClock.confirmation)
        #expect(steady.isConfirmed)
    }
}
