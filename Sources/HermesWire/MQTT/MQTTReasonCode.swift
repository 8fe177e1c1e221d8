// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of an operation as in MQTT 5.0 (2.4); 0x80 and above are failures.
public struct MQTTReasonCode: RawRepresentable, Hashable, Sendable {
    /// The byte on the wire.
    public let rawValue: UInt8

    /// Creates the reason code with this byte. The standard need not define the byte.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Whether the operation failed.
    package var isFailure: Bool { rawValue >= 0x80 }

    /// Success, normal disconnection or granted QoS 0, depending on the packet.
    package static let success = Self(rawValue: 0x00)
    package static let grantedQoS1 = Self(rawValue: 0x01)
    package static let grantedQoS2 = Self(rawValue: 0x02)
    package static let disconnectWithWill = Self(rawValue: 0x04)
    package static let noMatchingSubscribers = Self(rawValue: 0x10)
    package static let noSubscriptionExisted = Self(rawValue: 0x11)
    package static let continueAuthentication = Self(rawValue: 0x18)
    package static let reauthenticate = Self(rawValue: 0x19)
    package static let unspecifiedError = Self(rawValue: 0x80)
    package static let malformedPacket = Self(rawValue: 0x81)
    package static let protocolError = Self(rawValue: 0x82)
    package static let implementationSpecificError = Self(rawValue: 0x83)
    package static let unsupportedProtocolVersion = Self(rawValue: 0x84)
    package static let clientIdentifierNotValid = Self(rawValue: 0x85)
    package static let badUserNameOrPassword = Self(rawValue: 0x86)
    package static let notAuthorized = Self(rawValue: 0x87)
    package static let serverUnavailable = Self(rawValue: 0x88)
    package static let serverBusy = Self(rawValue: 0x89)
    package static let banned = Self(rawValue: 0x8A)
    package static let serverShuttingDown = Self(rawValue: 0x8B)
    package static let badAuthenticationMethod = Self(rawValue: 0x8C)
    package static let keepAliveTimeout = Self(rawValue: 0x8D)
    package static let sessionTakenOver = Self(rawValue: 0x8E)
    package static let topicFilterInvalid = Self(rawValue: 0x8F)
    package static let topicNameInvalid = Self(rawValue: 0x90)
    package static let packetIdentifierInUse = Self(rawValue: 0x91)
    package static let packetIdentifierNotFound = Self(rawValue: 0x92)
    package static let receiveMaximumExceeded = Self(rawValue: 0x93)
    package static let topicAliasInvalid = Self(rawValue: 0x94)
    package static let packetTooLarge = Self(rawValue: 0x95)
    package static let messageRateTooHigh = Self(rawValue: 0x96)
    package static let quotaExceeded = Self(rawValue: 0x97)
    package static let administrativeAction = Self(rawValue: 0x98)
    package static let payloadFormatInvalid = Self(rawValue: 0x99)
    package static let retainNotSupported = Self(rawValue: 0x9A)
    package static let qosNotSupported = Self(rawValue: 0x9B)
    package static let useAnotherServer = Self(rawValue: 0x9C)
    package static let serverMoved = Self(rawValue: 0x9D)
    package static let sharedSubscriptionsNotSupported = Self(rawValue: 0x9E)
    package static let connectionRateExceeded = Self(rawValue: 0x9F)
    package static let maximumConnectTime = Self(rawValue: 0xA0)
    package static let subscriptionIdentifiersNotSupported = Self(rawValue: 0xA1)
    package static let wildcardSubscriptionsNotSupported = Self(rawValue: 0xA2)
}

extension MQTTReasonCode {
    /// Whether a packet may carry the code (table 2-6). Another code in the packet is a protocol error.
    ///
    /// - Parameter type: the packet's type.
    func isAllowed(in type: MQTTPacketType) -> Bool {
        switch type {
        case .connack:
            switch rawValue {
            case 0x00, 0x80...0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99...0x9D, 0x9F: true
            default: false
            }
        case .puback, .pubrec:
            switch rawValue {
            case 0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99: true
            default: false
            }
        case .pubrel, .pubcomp:
            rawValue == 0x00 || rawValue == 0x92
        case .suback:
            switch rawValue {
            case 0x00...0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2: true
            default: false
            }
        case .unsuback:
            switch rawValue {
            case 0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91: true
            default: false
            }
        case .disconnect:
            switch rawValue {
            case 0x00, 0x04, 0x80...0x83, 0x87, 0x89, 0x8B, 0x8D...0x90, 0x93...0xA2: true
            default: false
            }
        case .auth:
            rawValue == 0x00 || rawValue == 0x18 || rawValue == 0x19
        case .connect, .publish, .subscribe, .unsubscribe, .pingreq, .pingresp:
            false
        }
    }
}
