// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error in a packet; the connection cannot go on.
package struct MQTTPacketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason code for DISCONNECT or CONNACK of MQTT 5.0.
    package let reason: MQTTReasonCode
    /// The error for people, with the statement of the standard where there is one.
    package let message: String

    package init(_ reason: MQTTReasonCode, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// The packet's bytes cannot be parsed.
    static func malformed(_ message: String) -> Self { Self(.malformedPacket, message) }

    /// The packet can be parsed and breaks a rule.
    static func protocolError(_ message: String) -> Self { Self(.protocolError, message) }

    package var description: String { message }
}
