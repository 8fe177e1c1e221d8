// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// Outgoing publications of QoS 1 and 2, without a connection.
@Suite struct MQTTOutboundTests {
    private static func message(_ text: String, _ qos: MQTTClient.QoS) throws -> MQTTOutgoing {
        try MQTTOutgoing(MQTTMessage(topic: "t", text: text, qos: qos), version: .v5)
    }

    private static func connected(_ machine: inout MQTTOutbound, present: Bool = false, window: Int = 10) -> [String] {
        let failures = machine.connected(sessionPresent: present, receiveMaximum: window, maxPacketBytes: nil)
        return words(failures) + words(machine.resumed())
    }

    /// Actions as short texts: "1:a" is packet 1 with the payload "a", and "1:a dup" is the same packet with DUP.
    private static func words(_ actions: [MQTTOutbound.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .send(let frame):
                guard case .publish(let packet)? = try? MQTTPacket(frame, version: .v5) else { return "?" }
                let text = String(buffer: packet.payload)
                return "\(packet.packetID ?? 0):\(text)\(packet.isDuplicate ? " dup" : "")"
            case .release(let packetID, let reason): return "release \(packetID)\(reason == .success ? "" : " unknown")"
            case .done(let id, let reason, _): return "done \(id) \(reason.rawValue)"
            case .failed(let id, let error): return "failed \(id) \(error.code.rawValue)"
            }
        }
    }

    @Test func `QoS 1 is done with PUBACK, whatever it says`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        #expect(Self.words(machine.published(try Self.message("a", .atLeastOnce), id: 16)) == ["1:a"])
        #expect(Self.words(machine.published(try Self.message("b", .atLeastOnce), id: 17)) == ["2:b"])
        #expect(Self.words(try machine.pubackReceived(2, .noMatchingSubscribers)) == ["done 17 16"])
        #expect(Self.words(try machine.pubackReceived(1, .quotaExceeded)) == ["done 16 151"])
        #expect(machine.inflight.isEmpty)
        // A second answer belongs to no message.
        #expect(try machine.pubackReceived(1, .success).isEmpty)
    }

    @Test func `QoS 2 is released, then done; a failure ends it at PUBREC`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        #expect(Self.words(machine.published(try Self.message("a", .exactlyOnce), id: 16)) == ["1:a"])
        #expect(Self.words(try machine.pubrecReceived(1, .noMatchingSubscribers)) == ["release 1"])
        #expect(Self.words(try machine.pubrecReceived(1, .success)) == ["release 1"])
        #expect(Self.words(try machine.pubcompReceived(1)) == ["done 16 0"])
        _ = machine.published(try Self.message("b", .exactlyOnce), id: 17)
        #expect(Self.words(try machine.pubrecReceived(2, .notAuthorized)) == ["done 17 135"])
        #expect(Self.words(try machine.pubrecReceived(9, .success)) == ["release 9 unknown"])
        #expect(try machine.pubcompReceived(9).isEmpty)
    }

    @Test func `answers of the wrong kind break the protocol`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        _ = machine.published(try Self.message("a", .exactlyOnce), id: 16)
        _ = machine.published(try Self.message("b", .atLeastOnce), id: 17)
        #expect(throws: MQTTPacketError.self) { try machine.pubackReceived(1, .success) }
        #expect(throws: MQTTPacketError.self) { try machine.pubcompReceived(1) }
        #expect(throws: MQTTPacketError.self) { try machine.pubrecReceived(2, .success) }
    }

    @Test func `the server's receive maximum is kept`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine, window: 2)
        let sent = try ["a", "b", "c", "d"].enumerated().flatMap { index, text in
            Self.words(machine.published(try Self.message(text, .atLeastOnce), id: UInt64(16 + index)))
        }
        #expect(sent == ["1:a", "2:b"])
        #expect(Self.words(try machine.pubackReceived(1, .success)) == ["done 16 0", "3:c"])
        // The message was abandoned before it was sent, so it is not sent.
        machine.abandoned(id: 19)
        #expect(Self.words(try machine.pubackReceived(2, .success)) == ["done 17 0"])
    }

    @Test func `a resumed session gets everything again, in order, marked`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        _ = machine.published(try Self.message("a", .atLeastOnce), id: 16)
        _ = machine.published(try Self.message("b", .exactlyOnce), id: 17)
        _ = machine.published(try Self.message("c", .exactlyOnce), id: 18)
        _ = try machine.pubrecReceived(2, .success)
        machine.lost()
        #expect(machine.published(try Self.message("d", .atLeastOnce), id: 19).isEmpty)
        #expect(Self.connected(&machine, present: true) == ["1:a dup", "release 2", "3:c dup", "4:d"])
        // The driver asks again for messages that may not have been written.
        #expect(machine.published(try Self.message("a", .atLeastOnce), id: 16).isEmpty)
        #expect(Self.words(try machine.pubcompReceived(2)) == ["done 17 0"])
    }

    @Test func `what is sent again keeps to the receive maximum, too`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        for (index, text) in ["a", "b", "c"].enumerated() {
            _ = machine.published(try Self.message(text, .atLeastOnce), id: UInt64(16 + index))
        }
        machine.lost()
        #expect(Self.connected(&machine, present: true, window: 1) == ["1:a dup"])
        #expect(throws: MQTTPacketError.self) { try machine.pubackReceived(2, .success) }
        #expect(Self.words(try machine.pubackReceived(1, .success)) == ["done 16 0", "2:b dup"])
    }

    @Test func `without the session, QoS 1 is sent anew and QoS 2 fails`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        for (index, qos) in [MQTTClient.QoS.atLeastOnce, .exactlyOnce, .atLeastOnce, .atLeastOnce].enumerated() {
            _ = machine.published(try Self.message("\(index)", qos), id: UInt64(16 + index))
        }
        machine.abandoned(id: 18)
        machine.lost()
        let lost = HermesClientError.Code.connectionLost.rawValue
        #expect(Self.connected(&machine) == ["failed 17 \(lost)", "5:0", "6:3"])
    }

    @Test func `what is too long for the server fails, also after waiting`() throws {
        var machine = MQTTOutbound()
        _ = machine.connected(sessionPresent: false, receiveMaximum: 1, maxPacketBytes: 20)
        let long = try Self.message(String(repeating: "x", count: 30), .atLeastOnce)
        let code = HermesClientError.Code.notEncodable.rawValue
        #expect(Self.words(machine.published(long, id: 16)) == ["failed 16 \(code)"])
        _ = machine.published(try Self.message("a", .atLeastOnce), id: 17)
        _ = machine.published(long, id: 18)
        _ = machine.published(try Self.message("b", .atLeastOnce), id: 19)
        #expect(Self.words(try machine.pubackReceived(1, .success)) == ["done 17 0", "failed 18 \(code)", "2:b"])
    }

    @Test(arguments: [false, true])
    func `a long message whose connections all end without an answer fails`(isPresent: Bool) throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        _ = machine.published(try Self.message("short", .atLeastOnce), id: 16)
        _ = machine.published(try Self.message(String(repeating: "x", count: 70_000), .atLeastOnce), id: 17)
        // Connections that end for another reason do not count.
        for _ in 1...9 {
            machine.lost()
            #expect(Self.connected(&machine, present: isPresent).count == 2)
        }
        for end in 1...5 {
            machine.lost(suspects: true)
            // Tries without a connection do not count either.
            machine.lost(suspects: true)
            let sent = Self.connected(&machine, present: isPresent)
            let failed = "failed 17 \(HermesClientError.Code.notEncodable.rawValue)"
            #expect(sent.contains(failed) == (end == 5))
            #expect(sent.count == 2, "the short one, and the long one or its failure")
        }
        machine.lost(suspects: true)
        #expect(Self.connected(&machine, present: isPresent).count == 1, "the short one goes on")
    }

    @Test func `a long message that is answered at last is not suspected any more`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        let long = try Self.message(String(repeating: "x", count: 70_000), .exactlyOnce)
        _ = machine.published(long, id: 16)
        for _ in 1...4 {
            machine.lost(suspects: true)
            _ = Self.connected(&machine, present: true)
        }
        _ = try machine.pubrecReceived(1, .success)
        for _ in 1...4 {
            machine.lost(suspects: true)
            #expect(Self.connected(&machine, present: true) == ["release 1"])
        }
    }

    @Test func `a connection that the server ended for the length of a packet makes no other message suspect`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine)
        let text = String(repeating: "x", count: 70_000)
        _ = machine.published(try Self.message(text, .atLeastOnce), id: 16)
        for id in UInt64(17)...21 {
            _ = machine.published(try Self.message(text + "y", .atLeastOnce), id: id)
            #expect(machine.refusedForLength().count == 1)
            machine.lost(suspects: true)
            _ = Self.connected(&machine, present: true)
            #expect(machine.inflight.values.map(\.id) == [16])
        }
        // Later connections that end without a reason count.
        for end in 1...5 {
            machine.lost(suspects: true)
            _ = Self.connected(&machine, present: true)
            #expect(machine.inflight.isEmpty == (end == 5))
        }
    }

    @Test func `numbers in use are skipped, and run out`() throws {
        var machine = MQTTOutbound()
        _ = Self.connected(&machine, window: 65_535)
        let borrowed = machine.borrowPacketID()
        let first = try #require(borrowed)
        #expect(first == 1)
        _ = machine.published(try Self.message("a", .atLeastOnce), id: 16)
        for _ in 0..<65_533 { _ = machine.borrowPacketID() }
        let none = machine.borrowPacketID()
        #expect(none == nil)
        #expect(machine.published(try Self.message("b", .atLeastOnce), id: 17).isEmpty)
        machine.returnPacketID(first)
        #expect(Self.words(try machine.pubackReceived(2, .success)) == ["done 16 0", "1:b"])
    }
}
