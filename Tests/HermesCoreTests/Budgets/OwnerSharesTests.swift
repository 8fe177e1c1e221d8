// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

/// No owner can take the share of another owner, whatever it asks for.
@Suite struct OwnerSharesTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    @Test(arguments: 1...20)
    func `no order of requests breaks a bound or shuts out who comes last`(_ seed: UInt64) {
        var random = Random(state: seed)
        let limit = SharedLimit(Int.random(in: 1...400, using: &random), perAccount: 60, perAddress: 25)
        let bytes = SharedLimit(limit.total * 50, perAccount: 2_000, perAddress: 900)
        var shares = OwnerShares(entries: limit, bytes: bytes)
        var held: [CommitSource: [Holding]] = [:]
        let owners =
            (0..<8).map { CommitSource.subject("\($0)") } + (0..<30).map { CommitSource(host: "10.0.0.\($0)") } + [
                .server
            ]
        for _ in 0..<3_000 {
            guard let owner = owners.randomElement(using: &random) else { return }
            if Int.random(in: 0..<3, using: &random) == 0,
                let index = held[owner]?.indices.randomElement(using: &random)
            {
                if let gone = held[owner]?.remove(at: index) { shares.add(-gone, of: owner) }
            } else {
                let new = Holding(entries: 1, bytes: Int.random(in: 1...120, using: &random))
                if owner != .server || Bool.random(using: &random), shares.take(new, of: owner) {
                    held[owner, default: []].append(new)
                }
            }
            let tally = shares.tally
            #expect(tally.total.entries == held.values.reduce(0) { $0 + $1.count })
            #expect(tally.total.entries <= limit.total && tally.total.bytes <= bytes.total)
            #expect(tally.anonymous.entries <= (limit.total + 1) / 2 && tally.anonymous.bytes <= (bytes.total + 1) / 2)
            for owner in owners where owner.kind != .server {
                let isAccount = owner.kind == .account
                #expect(
                    tally[owner].entries <= (isAccount ? 60 : 25) && tally[owner].bytes <= (isAccount ? 2_000 : 900)
                )
            }
            if tally.total.entries < limit.total, tally.total.bytes < bytes.total {
                let last = CommitSource.subject("who comes last")
                #expect(shares.hasRoom(for: Holding(entries: 1, bytes: 1), of: last))
            }
        }
    }

    @Test func `the room for many is what one after the other would find`() {
        let ann = CommitSource.subject("ann")
        var shares = OwnerShares(
            entries: SharedLimit(1_000, perAccount: 40),
            bytes: SharedLimit(10_000, perAccount: 500)
        )
        #expect(shares.room(for: 7, bytes: 10, of: ann) == 7)
        #expect(shares.room(for: 100, bytes: 10, of: ann) == 40)
        #expect(shares.room(for: 100, bytes: 100, of: ann) == 5)
        #expect(shares.room(for: .max, bytes: .max, of: ann) == 0)
        for _ in 0..<38 { #expect(shares.take(Holding(entries: 1, bytes: 10), of: ann) == true) }
        #expect(shares.room(for: 100, bytes: 10, of: ann) == 2)
        for _ in 0..<2 { #expect(shares.take(Holding(entries: 1, bytes: 10), of: ann) == true) }
        #expect(shares.room(for: 1, bytes: 10, of: ann) == 0)
        #expect(shares.room(for: 30, bytes: 10, of: .subject("bob")) == 30)
        // All addresses without an account together have half of the total, and five entries of it are left.
        shares.add(Holding(entries: 495, bytes: 495), of: CommitSource(host: "10.0.0.1"))
        #expect(shares.room(for: 30, bytes: 1, of: CommitSource(host: "10.0.0.2")) == 5)
    }

    @Test func `a flood of addresses leaves accounts their half`() {
        var shares = OwnerShares(entries: SharedLimit(1_000))
        for number in 0..<5_000 {
            let address = CommitSource(host: "10.0.\(number / 250).\(number % 250)")
            while shares.take(Holding(entries: 1), of: address) {}
        }
        #expect(shares.tally.total.entries == 500)
        for (account, share) in [("ann", 250), ("bob", 125)] {
            while shares.take(Holding(entries: 1), of: .subject(account)) {}
            #expect(shares.tally[.subject(account)].entries == share)
        }
    }

    @Test func `changes that are not counted yet count`() {
        var shares = OwnerShares(entries: SharedLimit(100, perAddress: 3))
        let address = CommitSource(host: "2001:db8::1")
        let neighbour = CommitSource(host: "2001:db8:0:0:ffff::2")
        #expect(address == neighbour)
        var changes = OwnerTally()
        changes.add(Holding(entries: 3), of: address)
        #expect(!shares.hasRoom(for: Holding(entries: 1), of: neighbour, with: changes))
        shares.add(changes)
        shares.add(-Holding(entries: 1), of: neighbour)
        let isTaken = shares.take(Holding(entries: 1), of: address)
        #expect(isTaken)
        shares.add(-Holding(entries: 3), of: address)
        #expect(shares.tally.isEmpty && shares.tally.anonymous == Holding())
    }
}
