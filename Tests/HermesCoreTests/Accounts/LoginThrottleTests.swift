// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite struct LoginThrottleTests {
    private static let limits = LoginThrottle.Limits(
        failuresPerSource: 3,
        failuresOfStrangers: 5,
        failuresPerAddress: 6,
        maxEntries: 100
    )

    private typealias Attempt = LoginThrottle.Attempt

    private func isAdmitted(_ throttle: inout LoginThrottle, _ attempt: Attempt, _ now: Duration = .zero) -> Bool {
        if case .go = throttle.begin(attempt, now: now) { true } else { false }
    }

    @Test func `many at once gain nothing`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let attempt = Attempt(account: "anna", address: "1.2.3.4")
        let begun = (0..<100).filter { _ in isAdmitted(&throttle, attempt) }
        #expect(begun.count == 3)
    }

    @Test func `success forgets`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let attempts = [
            Attempt(account: "anna", address: "1.2.3.4"), Attempt(account: "anna", address: nil),
            Attempt(account: "anna", address: "1.2.3.4", isAddressKnown: true),
            Attempt(account: "anna", address: "1.2.3.4", device: DeviceID("phone")), Attempt(address: "1.2.3.4"),
        ]
        for attempt in attempts {
            for _ in 0..<50 {
                guard case .go(let charge) = throttle.begin(attempt, now: .zero) else {
                    Issue.record("\(attempt) has to wait")
                    break
                }
                throttle.takeBack(charge)
            }
        }
    }

    @Test func `time wins back`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let attempt = Attempt(account: "anna", address: "1.2.3.4")
        for _ in 0..<3 { _ = throttle.begin(attempt, now: .zero) }
        #expect(throttle.begin(attempt, now: .zero) == .wait(.seconds(1200)))
        #expect(throttle.begin(attempt, now: .seconds(600)) == .wait(.seconds(600)))
        #expect(isAdmitted(&throttle, attempt, .seconds(1200)))
        #expect(!isAdmitted(&throttle, attempt, .seconds(1200)))
        #expect((0..<10).filter { _ in isAdmitted(&throttle, attempt, .seconds(10_000)) }.count == 3)
    }

    @Test func `an address is limited over all accounts`() {
        var throttle = LoginThrottle(limits: Self.limits)
        for number in 0..<6 { #expect(isAdmitted(&throttle, Attempt(account: "a\(number)", address: "1.2.3.4"))) }
        #expect(throttle.begin(Attempt(account: "other", address: "1.2.3.4"), now: .zero) == .wait(.seconds(10)))
        #expect(!isAdmitted(&throttle, Attempt(address: "1.2.3.4")))
        #expect(isAdmitted(&throttle, Attempt(account: "other", address: "1.2.3.5")))
        // An owner who is known at this address is not locked out by neighbours who guess.
        #expect(isAdmitted(&throttle, Attempt(account: "other", address: "1.2.3.4", isAddressKnown: true)))
    }

    @Test func `strangers are limited together`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let begun = (0..<50).filter { isAdmitted(&throttle, Attempt(account: "anna", address: "10.0.0.\($0)")) }
        #expect(begun.count == 5)
        // This limit does not apply to a device of the account, or to an address that the account has used before.
        #expect(isAdmitted(&throttle, Attempt(account: "anna", address: "9.9.9.9", device: DeviceID("phone"))))
        #expect(isAdmitted(&throttle, Attempt(account: "anna", address: "9.9.9.9", isAddressKnown: true)))
    }

    @Test func `a device and its address have budgets of their own`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let phone = Attempt(account: "anna", address: "9.9.9.9", device: DeviceID("phone"), isAddressKnown: true)
        let begun = (0..<50).filter { _ in isAdmitted(&throttle, phone) }
        #expect(begun.count == 6, "three of the device, three of the address")
        let pad = Attempt(account: "anna", address: "9.9.9.9", device: DeviceID("pad"), isAddressKnown: true)
        #expect(isAdmitted(&throttle, pad))
    }

    @Test func `changes of the password have a budget that no login uses`() {
        var throttle = LoginThrottle(limits: Self.limits)
        for isKnown in [true, false] {
            let local = Attempt(account: "anna", address: nil, isAddressKnown: isKnown)
            for _ in 0..<3 { #expect(isAdmitted(&throttle, local)) }
            #expect(!isAdmitted(&throttle, local))
        }
        let change = Attempt.passwordChange(of: "anna")
        for _ in 0..<3 { #expect(isAdmitted(&throttle, change)) }
        #expect(!isAdmitted(&throttle, change))
        #expect(isAdmitted(&throttle, .passwordChange(of: "bob")))
    }

    @Test func `flooding the tables resets nothing`() {
        var throttle = LoginThrottle(limits: Self.limits)
        let anna = (0..<5).map { Attempt(account: "anna", address: "10.0.0.\($0)") }
        for attempt in anna { #expect(isAdmitted(&throttle, attempt)) }
        for number in 0..<10_000 {
            _ = throttle.begin(
                Attempt(account: "b\(number)", address: "10.1.\(number / 256).\(number % 256)"),
                now: .zero
            )
        }
        #expect(!isAdmitted(&throttle, Attempt(account: "anna", address: "10.0.0.9")))
    }

    @Test func `tables are bounded`() {
        var table = FailureTable<Int>(capacity: 3, per: .seconds(60), maxEntries: 100)
        for number in 0..<10_000 {
            table.charge(number, now: .seconds(number / 100))
            #expect(table.count <= 100)
        }
        for number in 0..<50 { table.refund(number) }
        #expect(table.count <= 100)
    }

    /// An owner who comes from a known address can always log in, whatever others do. The number of guesses in an hour
    /// is at most twice the strangers' budget, however many addresses somebody guesses from. The reason is that the
    /// budget may be full at the beginning of the hour, and refills at most once within the hour.
    @Test(arguments: 0..<20) func `model of owner and attacker`(seed: UInt64) {
        var random = SplitMix(state: seed)
        let limits = LoginThrottle.Limits()
        var throttle = LoginThrottle(limits: limits)
        let addresses = Int(random.next() % 500) + 1
        var guesses: [Duration] = []
        var now = Duration.zero
        for _ in 0..<20_000 {
            now += .milliseconds(Int64(random.next() % 2_000))
            if random.next() % 10 == 0 {
                // The owner sometimes mistypes the password, but fewer than ten times an hour.
                let owner = Attempt(account: "anna", address: "192.0.2.1", isAddressKnown: true)
                guard case .go(let charge) = throttle.begin(owner, now: now) else {
                    Issue.record("the owner has to wait at \(now), seed \(seed)")
                    return
                }
                if random.next() % 300 != 0 { throttle.takeBack(charge) }
            } else {
                let address = "10.0.\(random.next() % UInt64(addresses))"
                // Some of the attacker's attempts are for other accounts, to displace the records of this account.
                let account = random.next() % 4 == 0 ? "x\(random.next() % 100_000)" : "anna"
                if isAdmitted(&throttle, Attempt(account: account, address: address), now), account == "anna" {
                    guesses.append(now)
                }
            }
        }
        var first = 0
        let most = min(2 * limits.failuresOfStrangers, 2 * limits.failuresPerSource * addresses)
        for (index, guess) in guesses.enumerated() {
            while guess - guesses[first] > .seconds(3600) { first += 1 }
            #expect(index - first + 1 <= most, "seed \(seed)")
        }
    }
}

@Suite struct NetworkAddressTests {
    @Test(arguments: [
        ("1.2.3.4", "1.2.3.4"), ("::ffff:1.2.3.4", "1.2.3.4"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"), ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("1::4:5:6:7:8", "1:::4::/64"), ("1:0:0:4:5:6:7:8", "1:::4::/64"),
    ])
    func `networks count as one`(address: String, key: String) { #expect(NetworkAddress.key(of: address) == key) }

    @Test(arguments: [
        ("2001:db8::1", "2001:db8:0:0:9:8:7:6", true), ("2001:db8::1", "2001:db9::1", false),
        ("::1", "0:0:0:0:0:0:0:2", true), ("fe80::1%eth0", "fe80::2%lo", true), ("2001:db8::1", "2001:DB8::1", true),
        ("1::4:5:6:7:8", "1::3:5:6:7:8", false), ("1.2.3.4", "1.2.3.5", false),
    ])
    func `hosts of one network are one`(one: String, other: String, areOne: Bool) {
        #expect((NetworkAddress.key(of: one) == NetworkAddress.key(of: other)) == areOne)
    }

    @Test func `keys are short`() {
        #expect(NetworkAddress.key(of: String(repeating: "x", count: 10_000)).utf8.count <= 64)
    }

    @Test func `marks differ by account and network`() throws {
        let users = try [#require(UserID(rawValue: 1)), #require(UserID(rawValue: 2))]
        let marks = users.flatMap { user in ["1.2.3.4", "1.2.3.5", nil].map { NetworkMark(of: user, at: $0) } }
        #expect(Set(marks).count == 6)
        #expect(NetworkMark(of: users[0], at: "1.2.3.4") == marks[0])
    }
}
