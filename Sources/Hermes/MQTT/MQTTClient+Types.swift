// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension MQTTClient {
    /// A version of MQTT.
    public enum Version: String, Hashable, Sendable, CaseIterable {
        /// MQTT 3.1.1.
        case v311
        /// MQTT 5.0.
        case v5

        var wire: MQTTVersion { self == .v5 ? .v5 : .v311 }
    }

    /// The quality of service, which says how reliably a message is delivered.
    public enum QoS: UInt8, Hashable, Sendable, CaseIterable {
        /// At most once. The message is not acknowledged.
        case atMostOnce = 0
        /// At least once. The message is sent again until it is acknowledged.
        case atLeastOnce = 1
        /// Exactly once, as long as both sides keep the session.
        case exactlyOnce = 2

        init(_ wire: MQTTQoS) {
            switch wire {
            case .atMostOnce: self = .atMostOnce
            case .atLeastOnce: self = .atLeastOnce
            case .exactlyOnce: self = .exactlyOnce
            }
        }

        var wire: MQTTQoS {
            switch self {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce: .atLeastOnce
            case .exactlyOnce: .exactlyOnce
            }
        }
    }

    /// A topic filter and its options.
    public struct Subscription: Hashable, Sendable {
        /// The retained messages that a subscription delivers; MQTT 5.0 only. With MQTT 3.1.1, a subscription delivers
        /// all retained messages that match.
        public enum RetainHandling: UInt8, Hashable, Sendable, CaseIterable {
            /// All retained messages that match.
            case sendAlways = 0
            /// All retained messages that match, if the subscription is new.
            case sendIfNew = 1
            /// No retained messages.
            case doNotSend = 2
        }

        /// The topic filter.
        package var filter: String
        /// The highest QoS at which messages are delivered.
        package var qos: QoS
        /// Whether the client does not get its own messages; MQTT 5.0 only.
        package var noLocal: Bool
        /// Whether forwarded messages keep the publisher's retain flag; MQTT 5.0 only.
        package var retainAsPublished: Bool
        /// The retained messages that the subscription delivers; MQTT 5.0 only.
        package var retainHandling: RetainHandling

        /// Creates a subscription.
        ///
        /// - Parameters:
        ///   - filter: the topic filter: `+` matches one level, and `#` at the end matches all levels below;
        ///     `$share/GROUP/FILTER` is a shared subscription.
        ///   - qos: the highest QoS at which messages are delivered.
        ///   - noLocal: whether the client does not get its own messages; MQTT 5.0 only.
        ///   - retainAsPublished: whether forwarded messages keep the publisher's retain flag; MQTT 5.0 only.
        ///   - retainHandling: the retained messages that the subscription delivers; MQTT 5.0 only.
        public init(
            _ filter: String,
            qos: QoS = .atMostOnce,
            noLocal: Bool = false,
            retainAsPublished: Bool = false,
            retainHandling: RetainHandling = .sendAlways
        ) {
            self.filter = filter
            self.qos = qos
            self.noLocal = noLocal
            self.retainAsPublished = retainAsPublished
            self.retainHandling = retainHandling
        }

        /// The filter, compared byte by byte [MQTT-4.7.3-4].
        var key: ExactText { ExactText(filter) }

        var wire: MQTTSubscription {
            MQTTSubscription(
                filter: filter,
                maximumQoS: qos.wire,
                noLocal: noLocal,
                retainAsPublished: retainAsPublished,
                retainHandling: MQTTSubscription.RetainHandling(rawValue: retainHandling.rawValue) ?? .sendAlways
            )
        }
    }

    /// The server's answer to CONNECT.
    public struct Connection: Hashable, Sendable {
        /// Whether the server still had the session, with its subscriptions and unacknowledged messages.
        public var sessionPresent: Bool
        /// The client identifier; assigned by the server if the client had none.
        public var clientID: String
        /// The highest QoS that the server accepts.
        package var maximumQoS: QoS
        /// Whether the server keeps retained messages.
        package var retainAvailable: Bool
        /// The largest number of unacknowledged QoS 1 and 2 messages that the server accepts.
        package var receiveMaximum: Int
        /// The longest packet that the server accepts, in bytes; nil if the server named no limit.
        package var maxPacketBytes: Int?
        /// The keep alive that the server requires; nil if the server accepts the client's keep alive.
        package var serverKeepAlive: Duration?
        /// The time for which the server keeps the session after the connection ends; nil if it is the time that the
        /// client asked for.
        package var sessionExpiry: Duration?
        /// The server's user properties.
        package var userProperties: [MQTTMessage.UserProperty]
        /// Whether the server accepts subscription identifiers.
        var subscriptionIdentifiersAvailable = true

        init(_ packet: MQTTConnack, clientID: String) {
            sessionPresent = packet.sessionPresent
            self.clientID = clientID
            maximumQoS = .exactlyOnce
            retainAvailable = true
            receiveMaximum = 65_535
            userProperties = []
            for property in packet.properties.list {
                switch property {
                case .assignedClientIdentifier(let id): self.clientID = id
                case .maximumQoS(let qos): maximumQoS = QoS(qos)
                case .retainAvailable(let isAvailable): retainAvailable = isAvailable
                case .receiveMaximum(let maximum): receiveMaximum = max(1, Int(maximum))
                case .maximumPacketSize(let bytes): maxPacketBytes = Int(clamping: bytes)
                case .serverKeepAlive(let seconds): serverKeepAlive = .seconds(Int64(seconds))
                case .sessionExpiryInterval(let seconds): sessionExpiry = .seconds(Int64(seconds))
                case .userProperty(let name, let value): userProperties.append(.init(name, value))
                case .subscriptionIdentifierAvailable(let isAvailable): subscriptionIdentifiersAvailable = isAvailable
                default: break  // of no use to an app
                }
            }
        }
    }
}
