// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import HermesGateways

struct ConnectionCounterTests {
    @Test func `counts in total and per address`() {
        let counter = ConnectionCounter(total: 3, perAddress: 2)
        #expect(counter.add(.v4(1)) == nil)
        #expect(counter.add(.v4(1)) == nil)
        #expect(counter.add(.v4(1)) == .perAddress)
        #expect(counter.add(.v4(2)) == nil)
        #expect(counter.add(.v4(3)) == .total)
        counter.remove(.v4(1))
        #expect(counter.add(.v4(3)) == nil)
        #expect(counter.open == 3)
    }

    @Test func `who is behind a proxy counts once that is known`() {
        let counter = ConnectionCounter(total: 3, perAddress: 1)
        for _ in 0..<3 { #expect(counter.add(.unknown) == nil) }
        #expect(counter.add(.unknown) == .total)
        #expect(counter.identify(.v4(1)) == nil)
        #expect(counter.identify(.v4(1)) == .perAddress)
        #expect(counter.open == 3)
        counter.remove(.v4(1))
        #expect(counter.identify(.v4(1)) == nil)
        counter.remove(.unknown)
        counter.remove(.v4(1))
        #expect(counter.open == 0)
        #expect(counter.add(.v4(1)) == nil)
    }

    @Test func `who has no address counts only in the total`() {
        let counter = ConnectionCounter(total: 4, perAddress: 1)
        for address in [ConnectionCounter.Address.local, .unknown, .local, .unknown] {
            #expect(counter.add(address) == nil)
        }
        #expect(counter.add(.local) == .total)
        counter.remove(.local)
        #expect(counter.add(.v4(1)) == nil)
    }

    @Test func `clients that a proxy hides take nothing of the reserve of the HTTP port`() throws {
        let counter = ConnectionCounter(total: 1, perAddress: 1000, http: .init(floor: 3, reserve: 20))
        var places: [HTTPPlace] = []
        for _ in 0..<3 {
            places.append(try HTTPPlace(counter, .unknown))
            try places.last?.identify(.hidden)
        }
        for _ in 0..<30 {
            let place = try HTTPPlace(counter, .unknown)
            #expect(throws: ConnectionCounter.Refusal.total) { try place.identify(.hidden) }
            place.giveBack()
        }
        let place = try HTTPPlace(counter, .unknown)
        try place.identify(.v4(1))
        for place in places + [place] { place.giveBack() }
        #expect(counter.openHTTP == 0)
    }

    @Test func `the HTTP port has a total of its own and counts for the same address`() throws {
        let counter = ConnectionCounter(total: 1, perAddress: 1000)
        #expect(counter.add(.v4(1)) == nil)
        #expect(counter.add(.v4(2)) == .total)
        // One address takes all the places that it can get. Another address still gets a few places.
        var places = try (0..<100).map { _ in try HTTPPlace(counter, .v4(1)) }
        #expect(throws: ConnectionCounter.Refusal.self) { try HTTPPlace(counter, .v4(1)) }
        for _ in 0..<8 { places.append(try HTTPPlace(counter, .v4(2))) }
        #expect(throws: ConnectionCounter.Refusal.self) { try HTTPPlace(counter, .v4(2)) }
        #expect(counter.openHTTP == 108)
        for place in places {
            place.giveBack()
            place.giveBack()
        }
        #expect(counter.openHTTP == 0)
        #expect(counter.open == 1)
        let narrow = ConnectionCounter(total: 10, perAddress: 2)
        let place = try HTTPPlace(narrow, .v4(1))
        #expect(narrow.add(.v4(1)) == nil)
        #expect(narrow.add(.v4(1)) == .perAddress)
        #expect(throws: ConnectionCounter.Refusal.self) { try HTTPPlace(narrow, .v4(1)) }
        place.giveBack()
        #expect(narrow.addHTTP(.v4(1)) == nil)
    }

    @Test func `a WebSocket moves from the HTTP port to its gateway`() throws {
        let counter = ConnectionCounter(total: 1, perAddress: 1)
        let first = try HTTPPlace(counter, .v4(1))
        try first.becomeGateway(as: .v4(1))
        #expect((counter.open, counter.openHTTP) == (1, 0))
        let second = try HTTPPlace(counter, .v4(2))
        #expect(throws: ConnectionCounter.Refusal.self) { try second.becomeGateway(as: nil) }
        #expect((counter.open, counter.openHTTP) == (1, 1))
        first.giveBack()
        // The address of a proxy has no limit, but the client's address from the proxy has a limit.
        let third = try HTTPPlace(counter, .unknown)
        try third.becomeGateway(as: .v4(7))
        #expect(counter.add(.v4(7)) == .total)
        third.giveBack()
        second.giveBack()
        let fourth = try HTTPPlace(counter, .unknown)
        #expect(counter.add(.v4(7)) == nil)
        #expect(throws: ConnectionCounter.Refusal.self) { try fourth.identify(.v4(7)) }
        fourth.giveBack()
        counter.remove(.v4(7))
        #expect((counter.open, counter.openHTTP) == (0, 0))
    }

    @Test func `one customer is one address`() throws {
        func address(_ text: String) throws -> ConnectionCounter.Address {
            ConnectionCounter.Address(try SocketAddress(ipAddress: text, port: 1))
        }
        #expect(try address("10.1.2.3") == .v4(0x0A01_0203))
        #expect(try address("::ffff:10.1.2.3") == .v4(0x0A01_0203))
        #expect(try address("2001:db8:0:1::1") == address("2001:db8:0:1:ffff::2"))
        #expect(try address("2001:db8:0:1::1") != address("2001:db8:0:2::1"))
        #expect(ConnectionCounter.Address(nil) == .local)
    }
}
