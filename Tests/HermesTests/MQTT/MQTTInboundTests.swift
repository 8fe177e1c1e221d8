// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

/// Incoming publications of QoS 1 and 2, without a connection.
@Suite struct MQTTInboundTests {
    private static func machine() -> MQTTInbound {
        var machine = MQTTInbound()
        machine.connected(sessionPresent: false)
        return machine
    }

    @Test func `QoS 1 is acknowledged once it is taken`() throws {
        var machine = Self.machine()
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: false) == .deliver(1))
        #expect(machine.taken(1, .atLeastOnce, delivery: 1, isConnected: true) == .puback(1))
        #expect(machine.taken(1, .atLeastOnce, delivery: 1, isConnected: true) == nil)
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: false) == .deliver(2))
        // The server uses the same identifier for another message before the acknowledgement.
        #expect(throws: MQTTPacketError.self) { try machine.published(1, .atLeastOnce, isDuplicate: false) }
    }

    @Test func `QoS 2 is delivered once until PUBREL, whatever its flags say`() throws {
        var machine = Self.machine()
        #expect(try machine.published(1, .exactlyOnce, isDuplicate: false) == .deliver(1))
        #expect(try machine.published(1, .exactlyOnce, isDuplicate: true) == .ignore)
        #expect(machine.taken(1, .exactlyOnce, delivery: 1, isConnected: true) == .pubrec(1))
        #expect(try machine.published(1, .exactlyOnce, isDuplicate: false) == .acknowledge(.pubrec(1)))
        #expect(machine.released(1) == .success)
        #expect(machine.released(1) == .packetIdentifierNotFound)
        #expect(try machine.published(1, .exactlyOnce, isDuplicate: false) == .deliver(2))
    }

    @Test func `another message under the number of an untaken one is delivered, and each is acknowledged for itself`()
        throws
    {
        var machine = Self.machine()
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: false) == .deliver(1))
        machine.connected(sessionPresent: true)
        // Without the DUP flag, this is another message.
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: false) == .deliver(2))
        #expect(machine.taken(1, .atLeastOnce, delivery: 1, isConnected: true) == nil)
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: true) == .ignore)
        #expect(machine.taken(1, .atLeastOnce, delivery: 2, isConnected: true) == .puback(1))
    }

    @Test func `what waits over a reconnect is not delivered twice`() throws {
        var machine = Self.machine()
        _ = try machine.published(1, .atLeastOnce, isDuplicate: false)
        _ = try machine.published(2, .exactlyOnce, isDuplicate: false)
        machine.connected(sessionPresent: true)
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: true) == .ignore)
        #expect(try machine.published(2, .exactlyOnce, isDuplicate: true) == .ignore)
        #expect(machine.taken(1, .atLeastOnce, delivery: 1, isConnected: true) == .puback(1))
        #expect(machine.taken(2, .exactlyOnce, delivery: 2, isConnected: true) == .pubrec(2))
    }

    @Test func `what is taken without a connection is acknowledged when it comes again`() throws {
        var machine = Self.machine()
        _ = try machine.published(1, .atLeastOnce, isDuplicate: false)
        _ = try machine.published(2, .exactlyOnce, isDuplicate: false)
        #expect(machine.taken(1, .atLeastOnce, delivery: 1, isConnected: false) == nil)
        machine.connected(sessionPresent: true)
        // The client is connected again, but the server has not sent the message again yet.
        #expect(machine.taken(2, .exactlyOnce, delivery: 2, isConnected: true) == nil)
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: true) == .acknowledge(.puback(1)))
        #expect(try machine.published(2, .exactlyOnce, isDuplicate: true) == .acknowledge(.pubrec(2)))
        // The identifier is free again. If the server has dropped a message in the meantime, another message may use
        // its identifier.
        #expect(try machine.published(1, .atLeastOnce, isDuplicate: false) == .deliver(3))
    }

    @Test func `numbers of a lost session mean nothing`() throws {
        var machine = Self.machine()
        _ = try machine.published(1, .exactlyOnce, isDuplicate: false)
        machine.connected(sessionPresent: false)
        #expect(try machine.published(1, .exactlyOnce, isDuplicate: false) == .deliver(2))
        #expect(machine.taken(1, .exactlyOnce, delivery: 1, isConnected: true) == nil)
        #expect(machine.taken(1, .exactlyOnce, delivery: 2, isConnected: true) == .pubrec(1))
    }
}
