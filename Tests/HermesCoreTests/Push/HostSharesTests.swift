// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct OriginSharesTests {
    private let backoff = Backoff(base: .seconds(2), limit: .seconds(600))

    private func place(_ verdict: OriginShares.Verdict) -> OriginShares.Place? {
        if case .taken(let place) = verdict { place } else { nil }
    }

    @Test func `services that have not delivered leave room for those that have`() throws {
        var limits = OriginShares.Limits()
        (limits.total, limits.unproven, limits.perUnproven, limits.perOrigin, limits.perUser) = (10, 4, 2, 8, 3)
        var shares = OriginShares(limits: limits, backoff: backoff)
        let users = try (1...9).map { try #require(UserID(rawValue: $0)) }
        let first = try #require(place(shares.take("good", of: users[0], now: .zero)))
        shares.release(first)
        shares.delivered("good")
        #expect(shares.total == 0)
        // Two to each stranger's service, four to all of them, whoever asks.
        var strangers = 0
        for user in users {
            for name in ["a", "b", "c"] where place(shares.take(name, of: user, now: .zero)) != nil { strangers += 1 }
        }
        #expect(strangers == 4)
        // One account gets its share, and the service that delivers the rest.
        var own = 0
        while place(shares.take("good", of: users[8], now: .zero)) != nil { own += 1 }
        #expect(own == 3)
        while let user = users.first(where: { place(shares.take("good", of: $0, now: .zero)) != nil }) {
            #expect(user != users[8])
            own += 1
        }
        #expect(shares.total == 10 && own == 6)
    }

    @Test func `a service that gives no answer is paused, longer each time, and others are not`() throws {
        var shares = OriginShares(backoff: backoff)
        let user = try #require(UserID(rawValue: 1))
        let taken = try #require(place(shares.take("slow", of: user, now: .zero)))
        shares.failed("slow", now: .seconds(20), random: 1)
        // It was under way before the pause.
        shares.failed("slow", now: .seconds(21), random: 1)
        shares.release(taken)
        guard case .paused(.seconds(22)) = shares.take("slow", of: user, now: .seconds(21)) else {
            Issue.record("not paused")
            return
        }
        #expect(self.place(shares.take("other", of: user, now: .seconds(21))) != nil)
        let again = try #require(self.place(shares.take("slow", of: user, now: .seconds(22))))
        shares.failed("slow", now: .seconds(42), random: 1)
        shares.release(again)
        guard case .paused(.seconds(46)) = shares.take("slow", of: user, now: .seconds(43)) else {
            Issue.record("not paused for longer")
            return
        }
    }

    @Test func `services are forgotten rather than gathered`() throws {
        var limits = OriginShares.Limits()
        limits.origins = 2
        var shares = OriginShares(limits: limits, backoff: backoff)
        let user = try #require(UserID(rawValue: 1))
        let held = [place(shares.take("a", of: user, now: .zero)), place(shares.take("b", of: user, now: .zero))]
        #expect(place(shares.take("c", of: user, now: .zero)) == nil)
        for place in held.compactMap({ $0 }) { shares.release(place) }
        #expect(place(shares.take("c", of: user, now: .zero)) != nil)
    }
}
