// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOCore
import Testing

struct ConnectionCounterTests {
    @Test func countsInTotalAndPerAddress() {
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

    @Test func whoIsBehindAProxyCountsOnceThatIsKnown() {
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

    @Test func oneCustomerIsOneAddress() throws {
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
