// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The control packet types, by their number in the fixed header (2.1.2).
public enum MQTTPacketType: UInt8, Hashable, Sendable, CaseIterable {
    case connect = 1
    case connack = 2
    case publish = 3
    case puback = 4
    case pubrec = 5
    case pubrel = 6
    case pubcomp = 7
    case subscribe = 8
    case suback = 9
    case unsubscribe = 10
    case unsuback = 11
    case pingreq = 12
    case pingresp = 13
    case disconnect = 14
    /// MQTT 5.0 only.
    case auth = 15

    /// The low four bits of the fixed header that the type requires; nil for PUBLISH, whose flags carry meaning
    /// [MQTT-2.1.3-1].
    var requiredFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        case .connect, .connack, .puback, .pubrec, .pubcomp, .suback, .unsuback, .pingreq, .pingresp, .disconnect,
            .auth:
            0
        }
    }
}
