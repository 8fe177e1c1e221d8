// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import NIOCore

/// An MQTT message that is to be published or that has arrived.
public struct MQTTMessage: Hashable, Sendable {
    /// A name-value pair that the application defines.
    public struct UserProperty: Hashable, Sendable {
        /// The name; names may repeat.
        public var name: String
        /// The value.
        public var value: String

        /// Creates a pair.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The MQTT 5.0 properties of a message. With MQTT 3.1.1, they are not sent.
    public struct Properties: Hashable, Sendable {
        /// Whether the payload is UTF-8 text; nil if the publisher did not specify it.
        public var isText: Bool?
        /// The time after which the message is no longer delivered, in whole seconds; nil if there is none.
        public var expiry: Duration?
        /// The payload's content type, for example a MIME type.
        public var contentType: String?
        /// The topic for an answer.
        public var responseTopic: String?
        /// The bytes that an answer repeats to identify its request.
        public var correlationData: ByteBuffer?
        /// The application's own name-value pairs, in order.
        public var userProperties: [UserProperty] = []
        /// In a message that arrived: the identifiers of the matching subscriptions.
        package internal(set) var subscriptionIdentifiers: [Int] = []
        /// In a message that arrived: the topic alias that its packet carried.
        package internal(set) var topicAlias: Int?

        /// Creates empty properties.
        public init() {}
    }

    /// The topic.
    public var topic: String
    /// The payload.
    public var payload: ByteBuffer
    /// The quality of service.
    public var qos: MQTTClient.QoS
    /// In a message to publish: whether the server is to retain it. In a message that arrived: whether it was
    /// retained.
    public var retain: Bool
    /// The MQTT 5.0 properties.
    public var properties: Properties
    /// In a message that arrived with QoS 1: whether it may have arrived before.
    public internal(set) var isDuplicate = false
    /// In a message that arrived with QoS 1 or 2: the packet identifier. Otherwise it is 0.
    package internal(set) var packetID: UInt16 = 0

    /// The numbers of earlier pushes to this topic that did not arrive and cannot be fetched; nil if none is known to
    /// be missing. Only a numbered push has this value: it arrives over MQTT 5.0 with the user properties `seq` and
    /// `epoch`.
    public internal(set) var missedPushes: ClosedRange<UInt64>?

    /// Creates a message to publish.
    ///
    /// - Parameters:
    ///   - topic: the topic: at least one byte, without `+` and `#`.
    ///   - payload: the payload; may be empty.
    ///   - qos: the quality of service.
    ///   - retain: whether the server is to retain the message; an empty payload removes the retained message.
    ///   - properties: the MQTT 5.0 properties.
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

    /// Creates a text message to publish.
    public init(topic: String, text: String, qos: MQTTClient.QoS = .atMostOnce, retain: Bool = false) {
        self.init(topic: topic, payload: ByteBuffer(string: text), qos: qos, retain: retain)
    }

    /// The payload as text; nil if it is not UTF-8.
    public var text: String? { String(validating: payload.readableBytesView, as: UTF8.self) }
}

// MARK: - To and from the wire
extension MQTTMessage {
    /// Creates a message from a packet that arrived.
    ///
    /// - Parameter topic: the packet's topic, or the topic of its alias.
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

    /// The number and epoch that the server gave to a push; nil if the message is not a numbered push.
    var pushNumber: (seq: UInt64, epoch: UInt64)? {
        func number(_ name: String) -> UInt64? {
            properties.userProperties.first { $0.name == name }.flatMap { UInt64($0.value) }
        }
        guard let seq = number("seq"), seq > 0, let epoch = number("epoch") else { return nil }
        return (seq, epoch)
    }

    /// Returns the packet. If its QoS requires a packet identifier, the identifier is the placeholder 1.
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
            default: break  // no other property belongs to a message
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
    /// The number of whole seconds for MQTT, rounded up, and limited to the largest number that the field holds.
    var wholeSeconds: UInt32 {
        let (seconds, attoseconds) = components
        return UInt32(clamping: attoseconds > 0 ? seconds &+ 1 : seconds)
    }
}
