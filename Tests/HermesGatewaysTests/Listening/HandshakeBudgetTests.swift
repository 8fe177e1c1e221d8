// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Testing

@testable import HermesGateways

struct HandshakeBudgetTests {
    private typealias Address = ConnectionCounter.Address

    @Test func `an address has its burst, then its rate, and a refusal costs nothing`() {
        let budget = HandshakeBudget(perAddress: 2)
        let burst = 2 * HandshakeBudget.burstSeconds
        func taken(_ address: Address, of count: Int, at now: Duration) -> Int {
            (0..<count).count { _ in budget.take(of: address, now: now) }
        }
        #expect(taken(.v4(1), of: 1_000, at: .zero) == burst)
        #expect(taken(.v4(1), of: 1_000, at: .milliseconds(499)) == 0)
        #expect(taken(.v4(1), of: 1_000, at: .milliseconds(500)) == 1)
        #expect(taken(.v4(2), of: 1_000, at: .milliseconds(500)) == burst)
        #expect(taken(.v4(1), of: 1_000, at: .seconds(3_600)) == burst)
        // Clients without a distinguishable address do not share a limit.
        for address in [Address.local, .unknown] { #expect(taken(address, of: 1_000, at: .zero) == 1_000) }
    }

    @Test func `an IPv6 network of 64 bits is one address`() throws {
        let counter = ConnectionCounter(total: 10, perAddress: 10, handshakesPerSecond: 1)
        func refusal(_ host: String) throws -> ConnectionCounter.Refusal? {
            let address = try SocketAddress(ipAddress: host, port: 1)
            return counter.beginHandshake(of: Address(address), now: .uptimeNanoseconds(5))
        }
        for host in 1...HandshakeBudget.burstSeconds { #expect(try refusal("2001:db8::\(host)") == nil) }
        #expect(try refusal("2001:db8::ffff") == .handshakes)
        #expect(try refusal("2001:db8:0:1::1") == nil)
    }

    @Test func `the table of addresses is bounded`() {
        var buckets = TokenBuckets<Int>()
        for number in 0...(TokenBuckets<Int>.maxEntries + 10) {
            let rate = { (_: Int) in TokenBuckets<Int>.Rate(perSecond: 1, burst: 1) }
            buckets.change(number, now: .zero, rate: rate) { $0.take() }
        }
        #expect(buckets.count <= TokenBuckets<Int>.maxEntries)
    }
}
