// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

/// The native protocol carried by publications: `hermes/v1/up` to the server, `hermes/v1/down` to the client, each also
/// as JSON with `/json` behind it. Owner: the connection's event loop.
final class MQTTInbox {
    enum Topic {
        static let up = "hermes/v1/up"
        static let upJSON = "hermes/v1/up/json"
        static let down = "hermes/v1/down"
        static let downJSON = "hermes/v1/down/json"
    }

    /// The identifiers of these publications lie above those of all others, so that they never meet.
    static let windowSize = 500
    static let firstPacketID = OutboundWindow.maxSpan + 1

    /// The form and QoS that the client subscribed to; JSON if it wants both.
    private(set) var isJSON = false
    private(set) var qos = QoS.atMostOnce
    /// Serves the packets.
    let packets: DelimitedSession
    private var window = makeWindow()
    /// The seq of the entry that each message of the window carries, the oldest first.
    private var seqs = Deque<UInt64>()

    static func makeWindow() -> OutboundWindow {
        OutboundWindow(limit: windowSize, span: Int(UInt16.max) - OutboundWindow.maxSpan)
    }

    init(packets: DelimitedSession) { self.packets = packets }

    func subscribed(_ filter: TopicFilter, _ qos: QoS) {
        isJSON = MQTTInbox.matches(filter, Topic.downJSON) && !MQTTInbox.matches(filter, Topic.down)
        self.qos = min(qos, .atLeastOnce)
    }

    /// Whether a filter asks for what comes down.
    static func isAskedFor(by filter: TopicFilter) -> Bool {
        filter.rawValue.hasPrefix("hermes/") && (matches(filter, Topic.down) || matches(filter, Topic.downJSON))
    }

    private static func matches(_ filter: TopicFilter, _ topic: String) -> Bool {
        TopicName(topic).map(filter.matches) ?? false
    }

    /// The packet identifier for an entry that is to be acknowledged; nil if it is sent at most once.
    func packetID(for packet: Hermes_V1_Packet) -> UInt16? {
        guard qos > .atMostOnce, case .event(let event) = packet.body, window.hasRoom else { return nil }
        if case .expired(let gone) = event.event {
            seqs.append(max(event.seq, gone.toSeq))
        } else {
            seqs.append(event.seq)
        }
        return UInt16(MQTTInbox.firstPacketID - 1) + window.send(exactlyOnce: false)
    }

    /// PUBACK of one of these publications: entries are taken in order.
    func acknowledged(_ packetID: UInt16) {
        let before = window.base
        guard case .completed = window.acknowledged(packetID - UInt16(MQTTInbox.firstPacketID - 1)) else { return }
        var taken: UInt64?
        for _ in before..<window.base { taken = seqs.popFirst() ?? taken }
        if let taken { packets.acknowledged(upTo: taken) }
    }

    /// A packet as the client wants it; nil if it cannot be written.
    func payload(of packet: Hermes_V1_Packet) -> ByteBuffer? {
        do {
            return isJSON ? ByteBuffer(string: try packet.jsonString()) : try packet.wireBuffer()
        } catch {
            return nil
        }
    }

    /// A packet as the client wrote it.
    static func packet(from payload: ByteBuffer, isJSON: Bool) throws(WireError) -> Hermes_V1_Packet {
        isJSON ? try Hermes_V1_Packet(wireJSON: payload) : try Hermes_V1_Packet(wire: payload)
    }
}
