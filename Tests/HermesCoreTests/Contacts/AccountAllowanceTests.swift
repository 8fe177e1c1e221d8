// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

struct AccountAllowanceTests {
    private let ann = UserID(1)
    private let bob = UserID(2)

    @Test func soManyAnHourEachAndAsManyAsABurst() throws {
        var allowance = AccountAllowance(perHour: 60)
        let ann = try #require(ann)
        let bob = try #require(bob)
        for _ in 1...60 { #expect(allowance.take(1, of: ann, now: .zero) == nil) }
        #expect(allowance.take(1, of: ann, now: .zero) == .seconds(60))
        #expect(allowance.take(1, of: bob, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .seconds(61)) == nil)
        #expect(allowance.take(1, of: ann, now: .seconds(62)) == nil)
        #expect(allowance.take(1, of: ann, now: .seconds(63)) != nil)
        // No more than an hour's worth comes together.
        for _ in 1...60 { #expect(allowance.take(1, of: ann, now: .seconds(100_000)) == nil) }
        #expect(allowance.take(1, of: ann, now: .seconds(100_000)) != nil)
    }

    @Test func whatCostMoreIsPaidOff() throws {
        var allowance = AccountAllowance(perHour: 3_600)
        let ann = try #require(ann)
        #expect(allowance.take(1, of: ann, now: .zero) == nil)
        allowance.charge(7_199, to: ann, now: .zero)
        #expect(allowance.take(1, of: ann, now: .zero) == .seconds(3_601))
        #expect(allowance.take(1, of: ann, now: .seconds(3_600)) != nil)
        #expect(allowance.take(1, of: ann, now: .milliseconds(3_601_500)) == nil)
        // A clock that goes back gives nothing.
        #expect(allowance.take(1, of: ann, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .zero) != nil)
    }

    @Test func whoHasEverythingAgainIsForgotten() throws {
        var allowance = AccountAllowance(perHour: 1)
        for number in 1...120_000 {
            let user = try #require(UserID(Int64(number)))
            #expect(allowance.take(1, of: user, now: .seconds(number)) == nil)
        }
        #expect(allowance.count < 60_000)
    }
}
