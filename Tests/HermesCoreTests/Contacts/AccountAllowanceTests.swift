// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

struct AccountAllowanceTests {
    private let ann = UserID(1)
    private let bob = UserID(2)

    private func seconds(_ wait: Duration?) -> Double? { wait.map { ($0 / .seconds(1)).rounded() } }

    @Test func `so many an hour each and as many as a burst`() throws {
        var allowance = AccountAllowance(perHour: 60)
        let ann = try #require(ann)
        let bob = try #require(bob)
        for _ in 1...60 { #expect(allowance.take(1, of: ann, now: .zero) == nil) }
        #expect(allowance.take(1, of: ann, now: .zero) == .seconds(60))
        #expect(allowance.take(1, of: bob, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .seconds(59)) != nil)
        #expect(allowance.take(1, of: ann, now: .seconds(61)) == nil)
        #expect(seconds(allowance.take(1, of: ann, now: .seconds(62))) == 58)
        #expect(allowance.take(1, of: ann, now: .seconds(119)) != nil)
        #expect(allowance.take(1, of: ann, now: .seconds(120)) == nil)
        // The allowance never contains more than the amount of one hour.
        for _ in 1...60 { #expect(allowance.take(1, of: ann, now: .seconds(100_000)) == nil) }
        #expect(allowance.take(1, of: ann, now: .seconds(100_000)) != nil)
    }

    @Test func `what cost more is paid off`() throws {
        var allowance = AccountAllowance(perHour: 3_600)
        let ann = try #require(ann)
        #expect(allowance.take(1, of: ann, now: .zero) == nil)
        allowance.charge(7_199, to: ann, now: .zero)
        let wait = allowance.take(1, of: ann, now: .zero) ?? .zero
        #expect((.milliseconds(3_600_999) ... .milliseconds(3_601_001)).contains(wait))
        #expect(allowance.take(1, of: ann, now: .seconds(3_600)) != nil)
        #expect(allowance.take(1, of: ann, now: .milliseconds(3_600_500)) != nil)
        #expect(allowance.take(1, of: ann, now: .milliseconds(3_602_500)) == nil)
        // A clock that goes back adds nothing to the allowance.
        #expect(allowance.take(1, of: ann, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .zero) != nil)
    }

    @Test(arguments: [1, 5, 200, 1_000_000])
    func `a clock that goes on lets no more through than the amount`(amount: Int) throws {
        var allowance = AccountAllowance(perHour: amount)
        let ann = try #require(ann)
        // The whole amount except three is taken at once.
        if amount > 3 { #expect(allowance.take(amount - 3, of: ann, now: .zero) == nil) }
        let taken = (1...100).filter { allowance.take(1, of: ann, now: .nanoseconds($0)) == nil }.count
        #expect(taken == min(amount, 3))
        // A caller that waits for the returned time is accepted.
        let now = Duration.nanoseconds(100)
        let wait = allowance.take(1, of: ann, now: now) ?? .zero
        #expect(wait > .zero)
        #expect(allowance.take(1, of: ann, now: now + wait) == nil)
    }

    @Test func `a cost needs room, and the largest cost needs a full allowance`() throws {
        var allowance = AccountAllowance(10, each: .seconds(10))
        let ann = try #require(ann)
        #expect(allowance.take(6, of: ann, now: .zero) == nil)
        #expect(seconds(allowance.take(6, of: ann, now: .zero)) == 2)
        #expect(allowance.take(4, of: ann, now: .zero) == nil, "what was refused is not charged")
        #expect(seconds(allowance.take(6, of: ann, now: .seconds(5))) == 1)
        #expect(allowance.take(6, of: ann, now: .seconds(6)) == nil)
        // This cost is larger than the whole amount.
        #expect(seconds(allowance.take(25, of: ann, now: .seconds(15))) == 1)
        #expect(allowance.take(25, of: ann, now: .seconds(16)) == nil)
        #expect(seconds(allowance.take(1, of: ann, now: .seconds(16))) == 16)
        #expect(allowance.take(1, of: ann, now: .seconds(32)) == nil)
    }

    @Test func `who has everything again is forgotten`() throws {
        var allowance = AccountAllowance(perHour: 1)
        for number in 1...120_000 {
            let user = try #require(UserID(Int64(number)))
            #expect(allowance.take(1, of: user, now: .seconds(number)) == nil)
        }
        #expect(allowance.count < 60_000)
    }

    /// The table is bounded. The accounts that used most are remembered.
    @Test func `whoever used least is forgotten`() throws {
        var allowance = AccountAllowance(1_000, each: .seconds(86_400))
        let ann = try #require(ann)
        #expect(allowance.take(1_000, of: ann, now: .zero) == nil)
        for number in 2...400_000 {
            let user = try #require(UserID(Int64(number)))
            #expect(allowance.take(number % 900 + 1, of: user, now: .zero) == nil)
            if number % 1_000 == 0 { #expect(allowance.count <= AccountAllowance.maxRemembered) }
        }
        #expect(allowance.take(1, of: ann, now: .zero) != nil)
        // All accounts have used the same amount.
        allowance = AccountAllowance(1_000, each: .seconds(86_400))
        for number in 1...250_000 {
            let user = try #require(UserID(Int64(number)))
            #expect(allowance.take(1_000, of: user, now: .zero) == nil)
        }
        #expect(allowance.count <= AccountAllowance.maxRemembered)
        #expect(allowance.count >= AccountAllowance.maxRemembered / 2)
    }

    @Test func `what did not happen is given back`() throws {
        var allowance = AccountAllowance(10, each: .seconds(10))
        let ann = try #require(ann)
        #expect(allowance.take(10, of: ann, now: .zero) == nil)
        allowance.giveBack(4, to: ann)
        #expect(allowance.take(4, of: ann, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .zero) == .seconds(1))
        allowance.giveBack(1_000, to: ann)
        #expect(allowance.take(10, of: ann, now: .zero) == nil)
        #expect(allowance.take(1, of: ann, now: .zero) != nil)
    }
}
