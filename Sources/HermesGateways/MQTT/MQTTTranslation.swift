// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// MQTT's packets in the core's words, and back.
enum MQTTTranslation {
    static func qos(_ qos: MQTTQoS) -> QoS { QoS(rawValue: qos.rawValue) ?? .atMostOnce }

    /// What a message says beside topic and payload; nil if nothing.
    static func details(of properties: MQTTProperties, now: Timestamp) -> PublicationDetails? {
        var expiresAt: Timestamp?
        var isText = false
        var contentType: String?
        var responseTopic: String?
        var correlationData: ByteBuffer?
        var pairs: [(name: String, value: String)] = []
        for property in properties.list {
            switch property {
            case .messageExpiryInterval(let seconds): expiresAt = now.advanced(by: .seconds(Int64(seconds)))
            case .payloadFormatIndicator(let text): isText = text
            case .contentType(let text): contentType = text
            case .responseTopic(let text): responseTopic = text
            // A copy: the slice would keep the read buffer.
            case .correlationData(let bytes): correlationData = ByteBuffer(bytes: bytes.readableBytesView)
            case .userProperty(let name, let value): pairs.append((name, value))
            default: break
            }
        }
        guard
            expiresAt != nil || isText || contentType != nil || responseTopic != nil || correlationData != nil
                || !pairs.isEmpty
        else { return nil }
        return PublicationDetails(
            expiresAt: expiresAt,
            payloadIsUTF8: isText,
            contentType: contentType,
            responseTopic: responseTopic,
            correlationData: correlationData,
            userProperties: pairs
        )
    }

    /// The properties of a forwarded message; of its expiry, what is left [MQTT-3.3.2-6].
    static func properties(of details: PublicationDetails, now: Timestamp) -> [MQTTProperty] {
        var list: [MQTTProperty] = []
        if details.payloadIsUTF8 { list.append(.payloadFormatIndicator(true)) }
        if let end = details.expiresAt {
            let left = max(0, end.rawValue - now.rawValue)
            list.append(.messageExpiryInterval(UInt32(clamping: (left + 999) / 1_000)))
        }
        if let type = details.contentType { list.append(.contentType(type)) }
        if let topic = details.responseTopic { list.append(.responseTopic(topic)) }
        if let data = details.correlationData { list.append(.correlationData(data)) }
        for (name, value) in details.userProperties { list.append(.userProperty(name, value)) }
        return list
    }

    /// The user property that tells what a room's payload is: the number of LiveRoom's type.
    static let roomTypeName = "liveroom-type"

    /// The type that is to be told to 5.0 clients; nil for what a client of theirs published.
    static func roomType(of publication: Publication) -> UInt16? {
        guard publication.kind != Publication.plainKind else { return nil }
        return publication.kind
    }

    static func isExpired(_ details: PublicationDetails?, now: Timestamp) -> Bool {
        guard let end = details?.expiresAt else { return false }
        return end <= now
    }

    /// Why a connection is refused, as CONNACK tells.
    static func connackReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .wrongCredentials, .invalidToken: .badUserNameOrPassword
        case .accountDisabled: .banned
        case .forbidden, .notAuthenticated: .notAuthorized
        case .invalidArgument: .clientIdentifierNotValid
        case .deviceLimitReached: .quotaExceeded
        case .overloaded, .rateLimited, .loginDelayed: .serverBusy
        case .shuttingDown: .serverShuttingDown
        default: .serverUnavailable
        }
    }

    /// Why a subscription that opens the inbox is refused.
    static func subackReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .forbidden, .notAuthenticated, .accountDisabled, .notFound: .notAuthorized
        case .deviceLimitReached: .quotaExceeded
        default: .unspecifiedError
        }
    }

    /// Whether 3.1.1 has a word for it; what else goes wrong before CONNACK closes the connection without one.
    static func hasReturnCode(_ reason: MQTTReasonCode) -> Bool {
        switch reason {
        case .unsupportedProtocolVersion, .clientIdentifierNotValid, .serverUnavailable, .serverBusy,
            .badUserNameOrPassword, .notAuthorized, .banned, .badAuthenticationMethod:
            true
        default: false
        }
    }

    /// Why a connection ends, as DISCONNECT tells; nil where nothing is to be said.
    static func disconnectReason(for reason: CloseReason) -> MQTTReasonCode? {
        switch reason {
        case .goodbye, .finished, .slowReader, .loginBudget: nil
        case .memory: .quotaExceeded
        case .rateLimited: .messageRateTooHigh
        case .malformed(let error): error.code == .frameTooLong ? .packetTooLarge : .malformedPacket
        case .notAuthenticated: .notAuthorized
        case .idle: .keepAliveTimeout
        // "The maximum connection time authorized for this connection has been exceeded" (table 3-10). 0x87 is for a request
        // that is not authorized, and there is none.
        case .tokenExpired: .maximumConnectTime
        case .session(.replaced): .sessionTakenOver
        case .session(.accountDisabled), .session(.accountDeleted), .session(.accountRenamed), .session(.revoked):
            .notAuthorized
        case .session(.shuttingDown), .shuttingDown: .serverShuttingDown
        }
    }

    /// What went wrong with a publication, as PUBACK and PUBREC tell.
    static func publishReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .forbidden, .notAuthenticated: .notAuthorized
        case .overloaded, .rateLimited: .quotaExceeded
        case .invalidArgument: .payloadFormatInvalid
        default: .unspecifiedError
        }
    }

    /// A success of SUBACK.
    static func granted(_ qos: QoS) -> MQTTReasonCode { MQTTReasonCode(rawValue: qos.rawValue) }
}
