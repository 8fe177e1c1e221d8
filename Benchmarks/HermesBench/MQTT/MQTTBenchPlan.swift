// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesWire
import NIOCore

/// The pattern of publishers and subscribers.
enum MQTTBenchShape: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// All publishers publish to one topic, to which all subscribers subscribe.
    case fanout
    /// Each publisher has its own topic. Each subscriber subscribes to all topics with a wildcard.
    case fanin
    /// Each publisher has its own topic and its own subscriber.
    case pair
    /// Connections send only heartbeats.
    case conn
    /// In each slot, a client connects, subscribes, publishes, receives and disconnects. Then the next client does the
    /// same.
    case churn
    /// Clients with kept sessions disconnect, messages are published to their sessions, and the clients reconnect.
    case offline
}

/// The parameters of an MQTT benchmark.
struct MQTTBenchPlan: Sendable {
    var shape: MQTTBenchShape
    var version: MQTTVersion
    var qos: MQTTQoS
    /// The size of a payload, in bytes.
    var bytes: Int
    /// The largest number of a publisher's messages that may be undelivered or unacknowledged.
    var window: Int
    var publishers: Int
    var subscribers: Int
    /// The number of messages that each publisher sends; nil if there is no limit.
    var messages: Int?
    /// The number of publications per second in total; nil if only the window limits it.
    var rate: Double?
    var keepAlive: UInt16
    var userName: String?
    var password: String?
    /// A random text in client ids and topics. It distinguishes this run from others.
    let run = String(UInt32.random(in: 0...UInt32.max), radix: 36)

    enum Role: Hashable, Sendable {
        case subscriber(Int)
        case publisher(Int)
        case idle(Int)
        case churn(Int)
    }

    /// The number of recipients of each message.
    var fan: Int { shape == .pair ? 1 : subscribers }

    func topic(of role: Role) -> String {
        switch (shape, role) {
        case (.fanin, .subscriber): "hb/\(run)/in/#"
        case (.fanin, .publisher(let index)): "hb/\(run)/in/\(index)"
        case (.pair, .subscriber(let index)), (.pair, .publisher(let index)): "hb/\(run)/p/\(index)"
        case (.churn, .churn(let index)): "hb/\(run)/c/\(index)"
        default: "hb/\(run)/room"
        }
    }

    /// - Parameter keepsSession: whether the server keeps the session after the connection has ended.
    func connect(_ role: Role, keepsSession: Bool) throws -> MQTTFrame {
        let name =
            switch role {
            case .subscriber(let index): "s\(index)"
            case .publisher(let index): "p\(index)"
            case .idle(let index): "i\(index)"
            case .churn(let index): "c\(index)"
            }
        let packet = MQTTConnect(
            version: version,
            clientID: "hb\(run)\(name)",
            cleanStart: !keepsSession,
            keepAlive: keepAlive,
            userName: userName,
            password: password.map { ByteBuffer(string: $0) },
            properties: version == .v5 && keepsSession ? [.sessionExpiryInterval(3600)] : []
        )
        return try MQTTPacket.connect(packet).frame(version: version)
    }

    func subscribe(_ role: Role) throws -> MQTTFrame {
        let subscription = MQTTSubscription(filter: topic(of: role), maximumQoS: qos)
        return try MQTTPacket.subscribe(MQTTSubscribe(packetID: 1, subscriptions: [subscription])).frame(
            version: version
        )
    }
}

/// The bytes of a PUBLISH before its payload, except the packet identifier.
struct MQTTBenchTemplate {
    private let head: ByteBuffer
    private let tail: ByteBuffer
    private let hasPacketID: Bool
    private let bytes: Int

    init(_ plan: MQTTBenchPlan, topic: String) {
        bytes = plan.bytes
        hasPacketID = plan.qos != .atMostOnce
        var head = ByteBuffer()
        let v5 = plan.version == .v5
        head.writeInteger(UInt8(0x30) | plan.qos.rawValue << 1)
        let length = 2 + topic.utf8.count + (hasPacketID ? 2 : 0) + (v5 ? 1 : 0) + bytes
        MQTTVariableByteInteger.write(length, into: &head)
        head.writeInteger(UInt16(truncatingIfNeeded: topic.utf8.count))
        head.writeString(topic)
        self.head = head
        tail = v5 ? ByteBuffer(bytes: [0]) : ByteBuffer()
    }

    func write(_ number: UInt64, at now: UInt64, packetID: UInt16, into buffer: inout ByteBuffer) {
        buffer.writeImmutableBuffer(head)
        if hasPacketID { buffer.writeInteger(packetID) }
        buffer.writeImmutableBuffer(tail)
        BenchStamp.write(number, at: now, bytes: bytes, into: &buffer)
    }
}
