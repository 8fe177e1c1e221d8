// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// The search for the publication that is too long for a server of MQTT 3.1.1, without a connection.
@Suite struct MQTTLengthSearchTests {
    private static let failure = "failed \(HermesClientError.Code.notEncodable.rawValue)"
    private static let long = String(repeating: "x", count: 2_000)

    /// A tracker with a clock, and the connections that it has.
    private struct Client {
        var machine = MQTTOutbound()
        private var clock = NIODeadline.uptimeNanoseconds(1)

        init() { _ = connect(present: false) }

        mutating func wait(_ time: TimeAmount) {
            clock = clock + time
            machine.now = clock
        }

        mutating func connect(present: Bool = true) -> [String] {
            machine.now = clock
            let failures = machine.connected(sessionPresent: present, receiveMaximum: 10, maxPacketBytes: nil)
            return Self.words(failures + machine.resumed())
        }

        mutating func publish(_ text: String, id: UInt64, qos: MQTTClient.QoS = .atLeastOnce) throws -> [String] {
            let message = MQTTMessage(topic: "t", text: text, qos: qos)
            return Self.words(machine.published(try MQTTOutgoing(message, version: .v311), id: id))
        }

        mutating func acknowledge(_ packetID: UInt16) throws -> [String] {
            Self.words(try machine.pubackReceived(packetID, .success))
        }

        /// The server closes the connection.
        mutating func end(after time: TimeAmount = .milliseconds(1)) -> [String] {
            wait(time)
            let actions = Self.words(machine.serverClosed())
            machine.lost()
            return actions
        }

        /// The server closes the connection, and the client connects again.
        mutating func next(present: Bool = true) -> [String] {
            let failures = end()
            return failures + connect(present: present)
        }

        /// Actions as short texts: a sent publication is the length of its payload.
        static func words(_ actions: [MQTTOutbound.Action]) -> [String] {
            actions.map { action in
                switch action {
                case .send(let frame):
                    guard case .publish(let packet)? = try? MQTTPacket(frame, version: .v311) else { return "?" }
                    return "\(packet.payload.readableBytes)"
                case .release: return "release"
                case .done(let id, _, _): return "done \(id)"
                case .failed(_, let error): return "failed \(error.code.rawValue)"
                }
            }
        }
    }

    @Test(arguments: [true, false])
    func `a long message fails when the server has closed five connections that got it alone`(
        isPresent: Bool
    ) throws {
        var client = Client()
        #expect(try client.publish(Self.long, id: 16) == ["2000"])
        for _ in 1...4 {
            #expect(client.next(present: isPresent) == ["2000"])
            // It arrives while the long one is being examined, so it waits.
            _ = try client.publish("later", id: 17)
        }
        #expect(client.end() == [Self.failure])
        #expect(client.connect(present: isPresent) == ["5"])
    }

    @Test func `the error names the message, the reason and the remedy`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for _ in 1...4 { _ = client.next() }
        client.wait(.milliseconds(1))
        guard case .failed(16, let error)? = client.machine.serverClosed().first else {
            Issue.record("it did not fail")
            return
        }
        for words in ["each of the 5 times", "this message of 2008 bytes", "limit", "Send a shorter message"] {
            #expect(error.message.contains(words), "\(error.message)")
        }
    }

    @Test func `an acknowledgement in between begins the count anew`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(try client.publish("short", id: 17).isEmpty)
        client.wait(MQTTLengthSearch.window)
        #expect(Client.words(client.machine.deadlineReached()) == ["5"])
        #expect(try client.acknowledge(2) == ["done 17"])
        // The long message was not alone on this connection.
        #expect(client.next() == ["2000"])
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(client.end() == [Self.failure])
    }

    @Test func `a long message of QoS 2 that the server has is not suspected any more`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16, qos: .exactlyOnce)
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(Client.words(try client.machine.pubrecReceived(1, .success)) == ["release"])
        for _ in 1...9 { #expect(client.next() == ["release"]) }
        #expect(Client.words(try client.machine.pubcompReceived(1)) == ["done 16"])
    }

    @Test func `a short message goes first, and the long one behind it is then sent alone`() throws {
        var client = Client()
        _ = try client.publish("short", id: 16)
        _ = try client.publish(Self.long, id: 17)
        for _ in 1...9 { #expect(client.next() == ["5"]) }
        #expect(try client.acknowledge(1) == ["done 16", "2000"])
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(client.end() == [Self.failure])
    }

    @Test func `a time-out, or an end of the network, does not count`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for _ in 1...20 {
            client.machine.lost()
            #expect(client.connect() == ["2000"])
        }
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        client.machine.lost()
        #expect(client.connect() == ["2000"])
        #expect(client.end() == [Self.failure])
    }

    @Test func `an end long after the write does not count, and begins the count anew`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(client.end(after: MQTTLengthSearch.window + .milliseconds(1)).isEmpty)
        #expect(client.connect() == ["2000"])
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(client.end() == [Self.failure])
    }

    @Test func `a message that every Hermes server takes never fails`() throws {
        var client = Client()
        // PUBLISH with a topic of one byte adds 8 bytes to this text.
        let text = String(repeating: "x", count: MQTTLengthSearch.harmlessBytes - 8)
        _ = try client.publish(text, id: 16)
        #expect(client.machine.inflight.values.first?.outgoing.frame.encodedBytes == MQTTLengthSearch.harmlessBytes)
        for _ in 1...50 { #expect(client.next() == ["\(text.count)"]) }
        #expect(try client.acknowledge(1) == ["done 16"])
    }

    @Test func `only the cause of several messages fails, and the others are sent`() throws {
        var client = Client()
        let longer = Self.long + Self.long
        for (index, text) in [Self.long, longer, Self.long, "short"].enumerated() {
            _ = try client.publish(text, id: UInt64(16 + index))
        }
        // The server acknowledges everything except the longer message.
        var sent = client.next()
        var ends = 0
        while ends < 20 {
            if sent.last == "2000", try client.acknowledge(1).contains("done 16") {
                #expect(client.machine.inflight[2]?.isSent == true)
            }
            let failures = client.end()
            ends += 1
            sent = client.connect()
            guard failures.isEmpty else {
                #expect(failures == [Self.failure] && sent == ["2000", "5"])
                break
            }
        }
        // Two connections end before the longer message is sent alone.
        #expect(ends == 6)
        #expect(try client.acknowledge(3) == ["done 18"])
        #expect(try client.acknowledge(4) == ["done 19"])
    }

    @Test func `a server that is slow to answer holds the other messages up for a short time only`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        _ = try client.publish("short", id: 17)
        #expect(client.next() == ["2000"])
        #expect(client.machine.nextDeadline != nil)
        #expect(client.machine.deadlineReached().isEmpty)
        client.wait(MQTTLengthSearch.window)
        #expect(Client.words(client.machine.deadlineReached()) == ["5"])
        #expect(client.machine.nextDeadline == nil)
        #expect(client.next() == ["2000"])
        // With the answer, the search is over.
        #expect(try client.acknowledge(1) == ["done 16", "5"])
        #expect(try client.publish(Self.long, id: 18) == ["2000"])
    }

    @Test func `a longer packet of another kind may be the cause`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for _ in 1...20 {
            client.machine.otherWritten(bytes: 3_000)
            #expect(client.next() == ["2000"])
        }
        for _ in 1...4 {
            client.machine.otherWritten(bytes: 1_000)
            #expect(client.next() == ["2000"])
        }
        #expect(client.end() == [Self.failure])
    }

    @Test func `a connection that the server ended for the length of a packet makes no other message suspect`() throws {
        var client = Client()
        _ = try client.publish(Self.long, id: 16)
        for id in UInt64(17)...26 {
            _ = try client.publish(Self.long + "y", id: id)
            #expect(client.machine.refusedForLength().count == 1)
            #expect(client.next() == ["2000"])
        }
        for _ in 1...4 { #expect(client.next() == ["2000"]) }
        #expect(client.end() == [Self.failure])
    }
}
