// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Carries the packets of the native protocol over MQTT 5.0.
///
/// The login travels in the authentication data of CONNECT and CONNACK, and a heartbeat is a PINGREQ. Every other
/// packet travels in a PUBLISH: the client publishes to `hermes/v1/up`, and the server publishes to `hermes/v1/down`.
/// The native protocol has its own acknowledgements for the inbox, so QoS 0 is enough.
struct MQTTCarrier: Sendable {
    /// A packet that arrived, and its length in bytes.
    typealias Arrival = (packet: Hermes_V1_Packet, bytes: Int)

    private enum Phase {
        case closed
        /// CONNECT and SUBSCRIBE were sent.
        case connecting
        /// The server has accepted the login. The carrier holds back the answer to the login until the server confirms
        /// the subscription.
        case welcomed(Arrival)
        case open
    }

    private enum Topic {
        static let up = "hermes/v1/up"
        static let down = "hermes/v1/down"
    }

    private static let method = "hermes.v1"
    private static let subscriptionID: UInt16 = 1
    /// The largest number of bytes that a publication adds to its packet: the fixed header, the topic with its length,
    /// and the length of the empty properties.
    private static let overhead = 5 + 2 + Topic.up.utf8.count + 1
    /// The longest authentication data (MQTT 5.0, section 1.5.6), in bytes.
    private static let maxLoginBytes = 65_535

    private let clientID: String
    private let keepAlive: UInt16
    private var references: MQTTServerReferences
    private var phase = Phase.closed

    /// Creates a carrier that has no connection yet.
    ///
    /// - Parameters:
    ///   - clientID: the device's id.
    ///   - longestInterval: the longest time between two heartbeats.
    ///   - port: the port for server references that name no port.
    init(clientID: String, longestInterval: Duration, port: Int) {
        self.clientID = clientID
        // The keep alive is a third longer than the longest interval, so a heartbeat that is a little late does not
        // break the protocol. The server waits one and a half times the keep alive. This is twice the longest
        // interval, so the link need not shorten the interval.
        keepAlive = UInt16(clamping: (UInt64(longestInterval.wholeSeconds) * 4 + 2) / 3)
        references = MQTTServerReferences(port: port)
    }

    /// Notes that the connection is lost.
    mutating func lost() { phase = .closed }

    // MARK: Writing

    /// Appends a packet.
    ///
    /// - Parameter body: the packet's bytes.
    mutating func write(_ packet: Hermes_V1_Packet, body: ByteBuffer, into buffer: inout ByteBuffer) throws {
        switch packet.body {
        case .register, .authenticate: try writeLogin(body, into: &buffer)
        default: try Self.write(.publish(MQTTPublish(topic: Topic.up, payload: body)), into: &buffer)
        }
    }

    /// Appends CONNECT, and SUBSCRIBE right after it. The server reads SUBSCRIBE after it has accepted the client.
    private mutating func writeLogin(_ body: ByteBuffer, into buffer: inout ByteBuffer) throws {
        guard body.readableBytes <= Self.maxLoginBytes else {
            throw HermesClientError(.notEncodable, "a login over MQTT takes at most \(Self.maxLoginBytes) bytes")
        }
        let connect = MQTTConnect(
            version: .v5,
            clientID: clientID,
            cleanStart: true,
            keepAlive: keepAlive,
            properties: [.authenticationMethod(Self.method), .authenticationData(body)]
        )
        let subscription = MQTTSubscription(filter: Topic.down, maximumQoS: .atMostOnce)
        let subscribe = MQTTSubscribe(packetID: Self.subscriptionID, subscriptions: [subscription])
        try Self.write(.connect(connect), into: &buffer)
        try Self.write(.subscribe(subscribe), into: &buffer)
        phase = .connecting
    }

    func writeHeartbeat(into buffer: inout ByteBuffer) throws { try Self.write(.pingreq, into: &buffer) }

    /// Appends the last packet of a connection that the client ends.
    func writeFarewell(into buffer: inout ByteBuffer) throws {
        switch phase {
        case .closed: return
        case .connecting, .welcomed, .open: try Self.write(.disconnect(MQTTDisconnect()), into: &buffer)
        }
    }

    private static func write(_ packet: MQTTPacket, into buffer: inout ByteBuffer) throws {
        try packet.write(into: &buffer, version: .v5)
    }

    // MARK: Reading

    /// Returns the packets of the native protocol that an MQTT packet carries or represents.
    ///
    /// - Throws: an error if the server breaks MQTT or the native protocol.
    mutating func received(_ frame: MQTTFrame) throws -> [Arrival] {
        let packet = try MQTTPacket(frame, version: .v5)
        switch (packet, phase) {
        case (.connack(let connack), .connecting):
            return try accepted(connack)
        case (.publish(let publish), .welcomed(let welcome)):
            // The subscription exists already: the server may send publications before SUBACK [MQTT-3.8.4-2].
            let arrival = try Self.arrival(publish)
            phase = .open
            return [welcome, arrival]
        case (.publish(let publish), .open):
            return [try Self.arrival(publish)]
        case (.suback(let suback), .welcomed(let welcome)):
            return try subscribed(suback, welcome)
        case (.suback(let suback), .open):
            _ = try subscribed(suback, nil)
            return []
        case (.disconnect(let disconnect), .connecting), (.disconnect(let disconnect), .welcomed),
            (.disconnect(let disconnect), .open):
            return [(kicked(disconnect.reason, disconnect.properties), 0)]
        case (.pingresp, .welcomed), (.pingresp, .open):
            return []
        default:
            throw HermesClientError(.protocolViolation, "the server sent a \(packet.type) that nobody asked for")
        }
    }

    private mutating func accepted(_ connack: MQTTConnack) throws -> [Arrival] {
        let data = connack.properties.authenticationData
        guard connack.reason == .success else {
            phase = .closed
            if references.isReference(connack.reason) { return [(kicked(connack.reason, connack.properties), 0)] }
            if let data, let packet = try? Hermes_V1_Packet(wire: data, maxParts: nil), packet.result.hasError {
                return [(packet, data.readableBytes)]
            }
            return [(Self.failure("the server refused the connection", connack.reason, connack.properties), 0)]
        }
        guard let data else {
            throw HermesClientError(
                .protocolViolation,
                "the server does not answer the login: it is not a Hermes server"
            )
        }
        references.arrived()
        var packet = try Hermes_V1_Packet(wire: data, maxParts: nil)
        guard case .session(var session) = packet.result.value, !packet.result.hasError else {
            throw HermesClientError(.protocolViolation, "the server accepts the connection, but opens no session")
        }
        var granted = keepAlive
        for property in connack.properties.list {
            switch property {
            case .serverKeepAlive(let seconds): granted = seconds
            case .maximumPacketSize(let bytes):
                let most = UInt32(clamping: max(1, Int(clamping: bytes) - Self.overhead))
                session.maxFrameBytes = session.maxFrameBytes == 0 ? most : min(session.maxFrameBytes, most)
            default: break
            }
        }
        session.idleTimeoutMs = UInt32(granted) * 1_500
        packet.result.session = session
        phase = .welcomed((packet, data.readableBytes))
        return []
    }

    private mutating func subscribed(_ suback: MQTTSuback, _ welcome: Arrival?) throws -> [Arrival] {
        guard suback.packetID == Self.subscriptionID, let reason = suback.reasons.first, suback.reasons.count == 1
        else {
            throw HermesClientError(.protocolViolation, "the server answers a subscription that nobody asked for")
        }
        guard reason.isFailure else {
            phase = .open
            return welcome.map { [$0] } ?? []
        }
        let what = "the server refuses the subscription to \(Topic.down)"
        guard welcome != nil else { throw HermesClientError(what, MQTTClient.ReasonCode(reason), suback.properties) }
        phase = .closed
        return [(Self.failure(what, reason, suback.properties), 0)]
    }

    private static func arrival(_ publish: MQTTPublish) throws -> Arrival {
        guard publish.topic == Topic.down, publish.qos == .atMostOnce else {
            throw HermesClientError(.protocolViolation, "the server publishes to a topic that nobody subscribed to")
        }
        return (try Hermes_V1_Packet(wire: publish.payload, maxParts: nil), publish.payload.readableBytes)
    }

    // MARK: Packets in place of MQTT reason codes

    /// Returns the answer to a login that the server refused with an MQTT reason code.
    private static func failure(
        _ what: String,
        _ reason: MQTTReasonCode,
        _ properties: MQTTProperties
    ) -> Hermes_V1_Packet {
        let reason = MQTTClient.ReasonCode(reason)
        let error = HermesClientError(what, reason, properties)
        var packet = Hermes_V1_Packet()
        packet.id = DelimitedLink.ID.authentication
        packet.result.error.code = error.code.rawValue
        packet.result.error.message = error.message
        packet.result.error.retryAfterMs = reason.mayRetry ? 5_000 : 0
        return packet
    }

    /// Returns a `kicked` packet that stands for an MQTT reason code. This packet is needed if the server ends the
    /// connection without sending a `kicked` packet of its own.
    private mutating func kicked(_ reason: MQTTReasonCode, _ properties: MQTTProperties) -> Hermes_V1_Packet {
        phase = .closed
        var packet = Hermes_V1_Packet()
        var kicked = Hermes_V1_Kicked()
        kicked.message = HermesClientError("the server ended the connection", .init(reason), properties).message
        switch reason {
        case .sessionTakenOver: kicked.reason = .replaced
        case .notAuthorized, .maximumConnectTime: kicked.reason = .revoked
        case .packetTooLarge:
            kicked.reason = .protocol
            kicked.code = HermesClientError.Code.frameTooLong.rawValue
        case .malformedPacket, .protocolError: kicked.reason = .protocol
        case .serverShuttingDown: kicked.reason = .shutdown
        case .keepAliveTimeout: kicked.reason = .timeout
        default: kicked.reason = .unspecified
        }
        if let advice = references.advice(reason, properties), let endpoint = advice.endpoint {
            kicked.reconnect.windowMs = UInt32(clamping: advice.window.wholeSeconds) * 1_000
            kicked.reconnect.address = endpoint.text
        }
        packet.kicked = kicked
        return packet
    }
}
