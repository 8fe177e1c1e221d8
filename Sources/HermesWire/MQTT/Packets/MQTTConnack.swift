// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// CONNACK: the server's answer to CONNECT (3.2).
package struct MQTTConnack: Hashable, Sendable {
    package var sessionPresent: Bool
    /// The outcome as a reason code of MQTT 5.0; the return codes of 3.1.1 are translated.
    package var reason: MQTTReasonCode
    package var properties: MQTTProperties

    package init(sessionPresent: Bool = false, reason: MQTTReasonCode, properties: MQTTProperties = []) {
        self.sessionPresent = sessionPresent
        self.reason = reason
        self.properties = properties
    }
}

extension MQTTConnack {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        let flags = try body.readMQTTByte("the acknowledge flags")
        guard flags & 0b1111_1110 == 0 else { throw .malformed("reserved acknowledge flags are set [MQTT-3.2.2-1]") }
        sessionPresent = flags == 1
        let code = try body.readMQTTByte("the reason code")
        switch version {
        case .v311:
            guard let translated = MQTTReasonCode(returnCode: code) else {
                throw .malformed("there is no return code \(code) [MQTT-3.2.2-6]")
            }
            reason = translated
            properties = []
        case .v5:
            reason = MQTTReasonCode(rawValue: code)
            guard reason.isAllowed(in: .connack) else { throw .protocolError("a CONNACK has no reason code \(code)") }
            properties = try MQTTProperties(from: &body, in: .packet(.connack))
        }
        guard !sessionPresent || reason == .success else {
            throw .protocolError("a refused connection has no session present [MQTT-3.2.2-6]")
        }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        body.writeInteger(UInt8(sessionPresent ? 1 : 0))
        switch version {
        case .v311:
            body.writeInteger(reason.returnCode)
        case .v5:
            body.writeInteger(reason.rawValue)
            try properties.write(into: &body)
        }
    }
}

extension MQTTReasonCode {
    /// Translates a return code of 3.1.1 (table 3.1); nil if it is undefined.
    fileprivate init?(returnCode: UInt8) {
        switch returnCode {
        case 0: self = .success
        case 1: self = .unsupportedProtocolVersion
        case 2: self = .clientIdentifierNotValid
        case 3: self = .serverUnavailable
        case 4: self = .badUserNameOrPassword
        case 5: self = .notAuthorized
        default: return nil
        }
    }

    fileprivate var returnCode: UInt8 {
        switch self {
        case .success: 0
        case .unsupportedProtocolVersion: 1
        case .clientIdentifierNotValid: 2
        case .badUserNameOrPassword: 4
        case .notAuthorized, .banned, .badAuthenticationMethod: 5
        default: 3
        }
    }
}
