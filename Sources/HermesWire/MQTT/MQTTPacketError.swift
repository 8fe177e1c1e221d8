// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error in a packet; the connection cannot continue.
package struct MQTTPacketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason code for DISCONNECT or CONNACK of MQTT 5.0.
    package let reason: MQTTReasonCode
    /// The error for people, with the number of the standard's statement or section where there is one.
    package let message: String

    package init(_ reason: MQTTReasonCode, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// Creates the error for a packet whose bytes cannot be parsed.
    static func malformed(_ message: String) -> Self { Self(.malformedPacket, message) }

    /// Creates the error for a packet that can be parsed but breaks a rule.
    static func protocolError(_ message: String) -> Self { Self(.protocolError, message) }

    package var description: String { message }
}
