// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import NIOCore

/// A message of MQTT: to publish, or as it arrived.
public struct MQTTMessage: Hashable, Sendable {
    /// A pair of the application's own.
    public struct UserProperty: Hashable, Sendable {
        /// What it is called; names may repeat.
        public var name: String
        /// What it says.
        public var value: String

        /// Creates a pair.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What MQTT 5.0 says about a message besides its payload; not sent over 3.1.1.
    public struct Properties: Hashable, Sendable {
        /// Whether the payload is UTF-8 text; nil: unsaid.
        public var isText: Bool?
        /// Not delivered after this time, in whole seconds; nil: never too late.
        public var expiry: Duration?
        /// What kind of payload it is, for example a MIME type.
        public var contentType: String?
        /// Where an answer is wanted.
        public var responseTopic: String?
        /// What an answer is to repeat, so that it is known for one.
        public var correlationData: ByteBuffer?
        /// Pairs of the application's own, in order.
        public var userProperties: [UserProperty] = []
        /// On arrival: the identifiers of the subscriptions that match.
        public internal(set) var subscriptionIdentifiers: [Int] = []
        /// On arrival: the topic alias that the packet carried.
        public internal(set) var topicAlias: Int?

        /// Creates properties that say nothing.
        public init() {}
    }

    /// Where it is published.
    public var topic: String
    /// What it says.
    public var payload: ByteBuffer
    /// How surely it is delivered.
    public var qos: MQTTClient.QoS
    /// To publish: the server keeps it for later subscribers. On arrival: it is such a kept one.
    public var retain: Bool
    /// What MQTT 5.0 says besides.
    public var properties: Properties
    /// On arrival: it may have come before (QoS 1).
    public internal(set) var isDuplicate = false
    /// On arrival, with QoS 1 and 2: the number of the packet; 0 otherwise.
    public internal(set) var packetID: UInt16 = 0

    /// On arrival, of a push that the server numbered (user properties `seq` and `epoch`; MQTT 5.0): the numbers of those
    /// before it on this topic that did not arrive, and cannot be fetched; nil: none is known to be missing.
    public internal(set) var missedPushes: ClosedRange<UInt64>?

    /// Creates a message to publish.
    ///
    /// - Parameters:
    ///   - topic: where to: at least one byte, no `+` and `#`.
    ///   - payload: what it says; may be empty.
    ///   - qos: how surely it is delivered.
    ///   - retain: the server keeps it for later subscribers; an empty payload removes a kept one.
    ///   - properties: what MQTT 5.0 says besides.
    public init(
        topic: String,
        payload: ByteBuffer = ByteBuffer(),
        qos: MQTTClient.QoS = .atMostOnce,
        retain: Bool = false,
        properties: Properties = Properties()
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }

    /// Creates a message of text to publish.
    public init(topic: String, text: String, qos: MQTTClient.QoS = .atMostOnce, retain: Bool = false) {
        self.init(topic: topic, payload: ByteBuffer(string: text), qos: qos, retain: retain)
    }

    /// The payload as text; nil if it is not UTF-8.
    public var text: String? { String(validating: payload.readableBytesView, as: UTF8.self) }
}

// MARK: - To and from the wire
extension MQTTMessage {
    /// - Parameter topic: the packet's, or the one that its alias stands for.
    init(_ packet: MQTTPublish, topic: String) {
        self.init(
            topic: topic,
            payload: packet.payload,
            qos: MQTTClient.QoS(packet.qos),
            retain: packet.retain,
            properties: Properties(packet.properties)
        )
        isDuplicate = packet.isDuplicate
        packetID = packet.packetID ?? 0
    }

    /// The number that the server gave to a push, and the epoch of that; nil: it is none.
    var pushNumber: (seq: UInt64, epoch: UInt64)? {
        func number(_ name: String) -> UInt64? {
            properties.userProperties.first { $0.name == name }.flatMap { UInt64($0.value) }
        }
        guard let seq = number("seq"), seq > 0, let epoch = number("epoch") else { return nil }
        return (seq, epoch)
    }

    /// The packet; its number is still to be set where the QoS wants one.
    func wire(_ version: MQTTVersion) -> MQTTPublish {
        MQTTPublish(
            topic: topic,
            payload: payload,
            qos: qos.wire,
            packetID: qos == .atMostOnce ? nil : 1,
            retain: retain,
            properties: version == .v5 ? properties.wire : []
        )
    }
}

extension MQTTMessage.Properties {
    init(_ wire: MQTTProperties) {
        for property in wire.list {
            switch property {
            case .payloadFormatIndicator(let isText): self.isText = isText
            case .messageExpiryInterval(let seconds): expiry = .seconds(Int64(seconds))
            case .contentType(let type): contentType = type
            case .responseTopic(let topic): responseTopic = topic
            case .correlationData(let data): correlationData = data
            case .userProperty(let name, let value): userProperties.append(.init(name, value))
            case .subscriptionIdentifier(let identifier): subscriptionIdentifiers.append(identifier)
            case .topicAlias(let alias): topicAlias = Int(alias)
            default: break  // no other belongs to a message
            }
        }
    }

    var wire: MQTTProperties {
        var list: [MQTTProperty] = []
        if let isText { list.append(.payloadFormatIndicator(isText)) }
        if let expiry { list.append(.messageExpiryInterval(expiry.wholeSeconds)) }
        if let contentType { list.append(.contentType(contentType)) }
        if let responseTopic { list.append(.responseTopic(responseTopic)) }
        if let correlationData { list.append(.correlationData(correlationData)) }
        for pair in userProperties { list.append(.userProperty(pair.name, pair.value)) }
        return MQTTProperties(list)
    }
}

extension Duration {
    /// Whole seconds as MQTT counts them, rounded up; the greatest number where there are more.
    var wholeSeconds: UInt32 {
        let (seconds, attoseconds) = components
        return UInt32(clamping: attoseconds > 0 ? seconds &+ 1 : seconds)
    }
}
