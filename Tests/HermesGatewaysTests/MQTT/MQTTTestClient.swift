// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesWire
import NIOCore
import NIOSSL

/// An MQTT client that sends exactly what a test requests, valid or invalid.
final class MQTTTestClient: Sendable {
    let wire: WireClient<MQTTFrameDecoder>
    let version: MQTTVersion
    let clientID: String

    private init(_ wire: WireClient<MQTTFrameDecoder>, _ version: MQTTVersion, _ clientID: String) {
        self.wire = wire
        self.version = version
        self.clientID = clientID
    }

    /// Opens a connection without sending anything.
    static func open(_ harness: GatewayHarness, _ version: MQTTVersion = .v5) async throws -> MQTTTestClient {
        MQTTTestClient(try await .connect(port: harness.listener.port), version, "")
    }

    /// Opens a connection to any server.
    static func open(port: Int, _ version: MQTTVersion = .v5) async throws -> MQTTTestClient {
        MQTTTestClient(try await .connect(port: port), version, "")
    }

    /// Opens a connection over TLS.
    static func open(
        _ harness: GatewayHarness,
        _ version: MQTTVersion,
        tls: TLSConfiguration
    ) async throws
        -> MQTTTestClient
    {
        MQTTTestClient(try await .connect(port: harness.listener.port, tls: tls), version, "")
    }

    // MARK: Packets

    func send(_ packets: MQTTPacket...) async throws {
        var bytes = ByteBuffer()
        for packet in packets { try packet.write(into: &bytes, version: version) }
        try await wire.send(bytes)
    }

    /// Sends bytes that are written in hexadecimal digits, such as "c0 00".
    func send(hex: String) async throws {
        try await wire.send(try ByteBuffer(plainHexEncodedBytes: hex.filter { !$0.isWhitespace }))
    }

    /// Returns the next packet; nil after the server has closed the connection.
    func nextOrEnd() async throws -> MQTTPacket? {
        guard let frame = try await wire.next() else { return nil }
        return try MQTTPacket(frame, version: version)
    }

    func next() async throws -> MQTTPacket {
        guard let packet = try await nextOrEnd() else { throw Unexpected("the server closed the connection") }
        return packet
    }

    /// Returns all packets until the server closes the connection.
    func untilEnd() async throws -> [MQTTPacket] {
        var packets: [MQTTPacket] = []
        while let packet = try await nextOrEnd() { packets.append(packet) }
        return packets
    }

    /// Sends a PINGREQ, and returns all packets before its answer.
    func untilPong() async throws -> [MQTTPacket] {
        try await send(.pingreq)
        var packets: [MQTTPacket] = []
        while true {
            let packet = try await next()
            if packet == .pingresp { return packets }
            packets.append(packet)
        }
    }

    /// Ends the connection without DISCONNECT.
    func drop() async throws { try await wire.close() }

    // MARK: Exchanges

    func subscribe(
        _ filters: String...,
        qos: MQTTQoS = .exactlyOnce,
        packetID: UInt16 = 1,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        handling: MQTTSubscription.RetainHandling = .sendAlways,
        identifier: Int? = nil
    ) async throws -> MQTTSuback {
        try await subscribe(
            filters,
            qos: qos,
            packetID: packetID,
            noLocal: noLocal,
            retainAsPublished: retainAsPublished,
            handling: handling,
            identifier: identifier
        )
    }

    func subscribe(
        _ filters: [String],
        qos: MQTTQoS = .exactlyOnce,
        packetID: UInt16 = 1,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        handling: MQTTSubscription.RetainHandling = .sendAlways,
        identifier: Int? = nil
    ) async throws -> MQTTSuback {
        let subscriptions = filters.map { filter in
            MQTTSubscription(
                filter: filter,
                maximumQoS: qos,
                noLocal: noLocal,
                retainAsPublished: retainAsPublished,
                retainHandling: handling
            )
        }
        let properties = MQTTProperties(identifier.map { [.subscriptionIdentifier($0)] } ?? [])
        try await send(
            .subscribe(MQTTSubscribe(packetID: packetID, subscriptions: subscriptions, properties: properties))
        )
        guard case .suback(let suback) = try await next() else { throw Unexpected("no SUBACK") }
        return suback
    }

    func unsubscribe(_ filters: String..., packetID: UInt16 = 2) async throws -> MQTTUnsuback {
        try await send(.unsubscribe(MQTTUnsubscribe(packetID: packetID, filters: filters)))
        guard case .unsuback(let unsuback) = try await next() else { throw Unexpected("no UNSUBACK") }
        return unsuback
    }

    /// Publishes, and completes the exchange of acknowledgements.
    ///
    /// - Returns: the reason code of PUBACK or PUBREC.
    @discardableResult
    func publish(
        _ topic: String,
        _ payload: String,
        qos: MQTTQoS = .atLeastOnce,
        packetID: UInt16 = 1,
        retain: Bool = false,
        properties: MQTTProperties = []
    ) async throws -> MQTTReasonCode {
        try await send(
            .publish(
                MQTTPublish(
                    topic: topic,
                    payload: ByteBuffer(string: payload),
                    qos: qos,
                    packetID: qos == .atMostOnce ? nil : packetID,
                    retain: retain,
                    properties: properties
                )
            )
        )
        switch qos {
        case .atMostOnce:
            return .success
        case .atLeastOnce:
            guard case .puback(let packet) = try await next(), packet.packetID == packetID else {
                throw Unexpected("no PUBACK")
            }
            return packet.reason
        case .exactlyOnce:
            let answer = try await next()
            guard case .pubrec(let packet) = answer, packet.packetID == packetID else {
                throw Unexpected("no PUBREC but \(answer)")
            }
            guard packet.reason.rawValue < 0x80 else { return packet.reason }
            try await send(.pubrel(MQTTAcknowledgement(packetID: packetID)))
            guard case .pubcomp(let end) = try await next(), end.packetID == packetID else {
                throw Unexpected("no PUBCOMP")
            }
            return packet.reason
        }
    }

    /// Returns the next packet, which must be a PUBLISH. Does not acknowledge it.
    func publication() async throws -> MQTTPublish {
        let packet = try await next()
        guard case .publish(let publish) = packet else { throw Unexpected("\(packet) in place of PUBLISH") }
        return publish
    }

    /// Returns the next PUBLISH, and completes its acknowledgement.
    func taken() async throws -> MQTTPublish {
        let publish = try await publication()
        guard let packetID = publish.packetID else { return publish }
        switch publish.qos {
        case .atMostOnce: break
        case .atLeastOnce: try await send(.puback(MQTTAcknowledgement(packetID: packetID)))
        case .exactlyOnce:
            try await send(.pubrec(MQTTAcknowledgement(packetID: packetID)))
            guard case .pubrel(let release) = try await next(), release.packetID == packetID else {
                throw Unexpected("no PUBREL")
            }
            try await send(.pubcomp(MQTTAcknowledgement(packetID: packetID)))
        }
        return publish
    }

    func disconnect(_ reason: MQTTReasonCode = .success, properties: MQTTProperties = []) async throws {
        try await send(.disconnect(MQTTDisconnect(reason: reason, properties: properties)))
        _ = try await untilEnd()
    }
}

extension GatewayHarness {
    /// Runs a body with one broker that has a store in memory.
    static func withMQTT(
        on listening: ListenerSettings = ListenerSettings(port: 0),
        settings: GatewaySettings = GatewaySettings(),
        sessionStore: (any SessionStore)? = nil,
        tokenVerifier: (any TokenVerifier)? = nil,
        durableSettings: DurableSettings = DurableSettings(),
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        try await with(
            MQTTGateway.self,
            on: listening,
            settings: settings,
            loops: 2,
            sessionStore: sessionStore,
            tokenVerifier: tokenVerifier,
            durableSettings: durableSettings,
            body
        )
    }

    /// Connects a client, and returns it with the server's answer.
    func apply(_ connect: MQTTConnect) async throws -> (MQTTTestClient, MQTTConnack) {
        let client = try await MQTTTestClient.open(self, connect.version)
        try await client.send(.connect(connect))
        guard case .connack(let connack) = try await client.next() else { throw Unexpected("no CONNACK") }
        return (client, connack)
    }

    /// Connects a client.
    ///
    /// - Parameter durable: whether the session is kept after the connection has ended.
    func client(
        _ name: String,
        _ version: MQTTVersion,
        durable: Bool = false,
        clean: Bool? = nil,
        keepAlive: UInt16 = 60,
        will: MQTTWill? = nil,
        properties: [MQTTProperty] = []
    ) async throws -> (client: MQTTTestClient, connack: MQTTConnack) {
        var connect = MQTTConnect(version: version, clientID: name, cleanStart: clean ?? !durable, keepAlive: keepAlive)
        connect.will = will
        connect.properties = MQTTProperties(
            properties + (durable && version == .v5 ? [.sessionExpiryInterval(600)] : [])
        )
        let (client, connack) = try await apply(connect)
        guard connack.reason == .success else { throw Unexpected("CONNACK with \(connack.reason)") }
        return (client, connack)
    }

    /// The same as `client`, for a test that does not need the CONNACK.
    func mqtt(
        _ name: String,
        _ version: MQTTVersion,
        durable: Bool = false,
        clean: Bool? = nil,
        will: MQTTWill? = nil,
        properties: [MQTTProperty] = []
    ) async throws -> MQTTTestClient {
        try await client(name, version, durable: durable, clean: clean, will: will, properties: properties).client
    }
}

extension MQTTPublish {
    var text: String { String(buffer: payload) }
}
