// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct HostSharesTests {
    private let backoff = Backoff(base: .seconds(2), limit: .seconds(600))

    private func place(_ verdict: HostShares.Verdict) -> HostShares.Place? {
        if case .taken(let place) = verdict { place } else { nil }
    }

    @Test func `services that have not delivered leave room for those that have`() throws {
        var limits = HostShares.Limits()
        (limits.total, limits.unproven, limits.perUnproven, limits.perHost, limits.perUser) = (40, 8, 2, 30, 4)
        var shares = HostShares(limits: limits, backoff: backoff)
        let users = try (1...20).map { try #require(UserID(rawValue: $0)) }
        let first = try #require(place(shares.take("good", of: users[0], now: .zero)))
        shares.release(first)
        shares.delivered("good")
        #expect(shares.total == 0)
        // Each stranger's service gets two places, and all of them together get eight, whichever account asks.
        var strangers = 0
        for user in users {
            for name in ["a", "b", "c", "d", "e"] where place(shares.take(name, of: user, now: .zero)) != nil {
                strangers += 1
            }
        }
        #expect(strangers == 8)
        // One account gets only its share. The service that delivers gets the rest.
        var own = 0
        while place(shares.take("good", of: users[19], now: .zero)) != nil { own += 1 }
        #expect(own == 4)
        while let user = users.first(where: { place(shares.take("good", of: $0, now: .zero)) != nil }) {
            #expect(user != users[19])
            own += 1
        }
        // The last quarter stays free.
        #expect(shares.total == 30 && own == 22)
    }

    @Test func `services that delivered once and then stall leave a quarter to others`() throws {
        var shares = HostShares(backoff: backoff)
        let users = try (1...100).map { try #require(UserID(rawValue: $0)) }
        for name in ["a", "b", "c", "d", "e", "fcm"] {
            let first = try #require(place(shares.take(name, of: users[0], now: .zero)))
            shares.delivered(name)
            shares.release(first)
        }
        for user in users {
            for name in ["a", "b", "c", "d"] { while place(shares.take(name, of: user, now: .zero)) != nil {} }
        }
        // When the fourth service came, three quarters were already taken.
        #expect(shares.total == 768 + 16)
        // Services that have not delivered do not get all of the rest, either.
        let more = try (101...200).map { try #require(UserID(rawValue: $0)) }
        for (number, user) in more.enumerated() {
            while place(shares.take("new \(number)", of: user, now: .zero)) != nil {}
        }
        #expect(shares.total == 768 + 16 + 128)
        var own = 0
        let last = try (201...210).map { try #require(UserID(rawValue: $0)) }
        for user in last { while place(shares.take("fcm", of: user, now: .zero)) != nil { own += 1 } }
        #expect(own == 16)
        #expect(place(shares.take("e", of: last[9], now: .zero)) != nil)
    }

    @Test func `a service that gives no answer is paused, longer each time, and others are not`() throws {
        var shares = HostShares(backoff: backoff)
        let user = try #require(UserID(rawValue: 1))
        let taken = try #require(place(shares.take("slow", of: user, now: .zero)))
        shares.failed("slow", now: .seconds(20), random: 1)
        // This request was under way before the pause.
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
        var limits = HostShares.Limits()
        limits.hosts = 2
        var shares = HostShares(limits: limits, backoff: backoff)
        let user = try #require(UserID(rawValue: 1))
        let held = [place(shares.take("a", of: user, now: .zero)), place(shares.take("b", of: user, now: .zero))]
        #expect(place(shares.take("c", of: user, now: .zero)) == nil)
        for place in held.compactMap({ $0 }) { shares.release(place) }
        #expect(place(shares.take("c", of: user, now: .zero)) != nil)
    }
}
