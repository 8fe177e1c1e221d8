// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension MQTTClient {
    /// The outcome of an operation, numbered as in MQTT 5.0. Numbers of 0x80 and above are failures. The return codes
    /// of MQTT 3.1.1 are translated into these numbers.
    public struct ReasonCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The number.
        public let rawValue: UInt8

        /// Wraps a number.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        init(_ wire: MQTTReasonCode) { rawValue = wire.rawValue }

        /// Whether the operation failed.
        public var isFailure: Bool { rawValue >= 0x80 }

        /// The operation succeeded. If the operation is a subscription, it was granted with QoS 0.
        public static let success = Self(rawValue: 0x00)
        /// A subscription was granted with QoS 1.
        package static let grantedQoS1 = Self(rawValue: 0x01)
        /// A subscription was granted with QoS 2.
        package static let grantedQoS2 = Self(rawValue: 0x02)
        /// The message was published, but no subscription matches its topic.
        public static let noMatchingSubscribers = Self(rawValue: 0x10)
        /// There was no such subscription.
        package static let noSubscriptionExisted = Self(rawValue: 0x11)
        /// The server does not say what is wrong.
        package static let unspecifiedError = Self(rawValue: 0x80)
        /// The user name or the password is wrong.
        public static let badUserNameOrPassword = Self(rawValue: 0x86)
        /// The client lacks the permission.
        public static let notAuthorized = Self(rawValue: 0x87)
        /// Another connection took the session over.
        public static let sessionTakenOver = Self(rawValue: 0x8E)

        /// The standard's name for the code, and the number.
        public var description: String {
            let hex = String(rawValue, radix: 16, uppercase: true)
            return "\(entry?.name ?? "unknown reason") (0x\(rawValue < 16 ? "0" : "")\(hex))"
        }

        /// The remedy; nil if none is known.
        var remedy: String? { entry?.remedy }

        /// Whether the client tries again after the server gave this reason for refusing or ending a connection, or for
        /// refusing the renewal of a subscription.
        var mayRetry: Bool {
            switch rawValue {
            // In this order: success, unspecified error, implementation specific error, server unavailable, server
            // busy, server shutting down, keep alive timeout, message rate too high, quota exceeded, connection rate
            // exceeded, maximum connect time.
            case 0x00, 0x80, 0x83, 0x88, 0x89, 0x8B, 0x8D, 0x96, 0x97, 0x9F, 0xA0: true
            default: false
            }
        }

        private var entry: (name: String, remedy: String?)? { Self.catalogue[rawValue] }

        private static let catalogue: [UInt8: (name: String, remedy: String?)] = [
            0x00: ("success", nil),
            0x01: ("granted QoS 1", nil),
            0x02: ("granted QoS 2", nil),
            0x04: ("disconnect with will", nil),
            0x10: ("no matching subscribers", nil),
            0x11: ("no subscription existed", nil),
            0x80: ("unspecified error", "the server's log says more"),
            0x81: ("malformed packet", "report this: the two programs understand MQTT differently"),
            0x82: ("protocol error", "report this: the two programs understand MQTT differently"),
            0x83: ("implementation specific error", "the server's log says more"),
            0x84: ("unsupported protocol version", "try the other version of MQTT: 3.1.1 or 5.0"),
            0x85: ("client identifier not valid", "choose another client id; without one, the session must be clean"),
            0x86: ("bad user name or password", "check the user name and the password"),
            0x87: ("not authorized", "log in as a user that may do this, or have the server's rules changed"),
            0x88: ("server unavailable", "try again later"),
            0x89: ("server busy", "try again later"),
            0x8A: ("banned", "ask whoever runs the server"),
            0x8B: ("server shutting down", "try again later"),
            0x8C: ("bad authentication method", "log in with a user name and a password"),
            0x8D: ("keep alive timeout", "a longer keep-alive, or a better network"),
            0x8E: ("session taken over", "another client uses the same client id: each needs its own"),
            0x8F: ("topic filter invalid", "+ and # stand alone in their level, # in the last one"),
            0x90: ("topic name invalid", "a topic name is not empty and has no + and #"),
            0x91: ("packet identifier in use", nil),
            0x92: ("packet identifier not found", nil),
            0x93: ("receive maximum exceeded", nil),
            0x94: ("topic alias invalid", nil),
            0x95: ("packet too large", "send less at once, or have the server's limit raised"),
            0x96: ("message rate too high", "send less often"),
            0x97: ("quota exceeded", "the server's limits do not allow more"),
            0x98: ("administrative action", "ask whoever runs the server"),
            0x99: ("payload format invalid", "the payload is not the text that it is said to be"),
            0x9A: ("retain not supported", "publish without retain"),
            0x9B: ("QoS not supported", "publish with a lower QoS"),
            0x9C: ("use another server", "connect to the server that it names"),
            0x9D: ("server moved", "connect to the server that it names"),
            0x9E: ("shared subscriptions not supported", "subscribe without $share"),
            0x9F: ("connection rate exceeded", "try again later"),
            0xA0: ("maximum connect time", "connect again"),
            0xA1: ("subscription identifiers not supported", "subscribe without an identifier"),
            0xA2: ("wildcard subscriptions not supported", "subscribe to topics without + and #"),
        ]
    }
}

extension HermesClientError {
    /// The reason code from an MQTT server; nil if the error has no such code.
    public var mqttReason: MQTTClient.ReasonCode? {
        guard let number = UInt8(exactly: Int(clamping: code.rawValue) - Self.mqttBase), number >= 0x80 else {
            return nil
        }
        return MQTTClient.ReasonCode(rawValue: number)
    }

    /// The number that is added to an MQTT reason code to give the error code.
    private static let mqttBase = 500

    /// Creates the error for an MQTT server's refusal. Its message holds the request, the reason and, if there are any,
    /// the server's own text, the server reference and the remedy.
    init(
        _ what: String,
        _ reason: MQTTClient.ReasonCode,
        _ properties: MQTTProperties = [],
        retryAfter: Duration? = nil
    ) {
        var message = "\(what): \(reason)"
        if let said = properties.reasonString { message += ", \"\(said.prefix(200))\"" }
        if let place = properties.serverReference { message += ", at \(place.prefix(200))" }
        if let remedy = reason.remedy { message += "; \(remedy)" }
        self.init(Code(rawValue: UInt32(Self.mqttBase) + UInt32(reason.rawValue)), message, retryAfter: retryAfter)
    }
}
