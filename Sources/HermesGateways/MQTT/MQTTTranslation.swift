// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Translates between MQTT's packets and the core.
enum MQTTTranslation {
    static func qos(_ qos: MQTTQoS) -> QoS { QoS(rawValue: qos.rawValue) ?? .atMostOnce }

    /// Returns a message's further properties; nil if it has none.
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
            // The data is copied, because a slice would keep the whole read buffer in memory.
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

    /// Returns the properties of a forwarded message, with the remaining expiry [MQTT-3.3.2-6].
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

    /// The name of the user property with the type of a room's payload. Its value is the number of the event's kind.
    static let roomTypeName = "liveroom-type"
    /// The name that replaces ``roomTypeName`` if a viewer sent an application-defined type whose number is reserved
    /// for the server in other protocols.
    static let applicationTypeName = "liveroom-application-type"

    /// Returns the user property with the type of a room event, for 5.0 clients; nil for a plain publication, and for
    /// an event whose publisher has declared the type, because that property is forwarded.
    static func roomType(of publication: Publication) -> MQTTProperty? {
        guard case .room(let kind) = publication.kind,
            publication.details?.userProperties.contains(where: { $0.name == roomTypeName }) != true
        else { return nil }
        return .userProperty(kind.looksLikeServers ? applicationTypeName : roomTypeName, "\(kind.number)")
    }

    /// Returns the reason code of a refused connection, for CONNACK (table 3-1).
    static func connackReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .wrongCredentials, .invalidToken: .badUserNameOrPassword
        case .accountDisabled: .banned
        // A code that invites a retry would make two connections of one client end each other again and again.
        case .replaced: .notAuthorized
        // Only another login can succeed, so the code does not invite a retry.
        case .forbidden, .notAuthenticated, .alreadyAuthenticated, .notFound, .nameTaken, .registrationClosed,
            .invitationRequired:
            .notAuthorized
        // "The CONNECT is valid but is not accepted by this Server." Errors in the client identifier itself are not
        // handled here, because they have a separate code.
        case .invalidArgument, .unsupported, .clientIDConflict, .tooLarge: .implementationSpecificError
        case .quotaExceeded, .deviceLimitReached, .inboxFull, .tooMuchUnread: .quotaExceeded
        case .overloaded, .rateLimited, .loginDelayed: .serverBusy
        // CONNACK does not have DISCONNECT's code for a server that is stopping (table 2-6).
        case .storageUnavailable, .shuttingDown, .internalError: .serverUnavailable
        // The catalogue has no other codes.
        default: .unspecifiedError
        }
    }

    /// Returns the reason code of a refused subscription to the inbox.
    static func subackReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .forbidden, .notAuthenticated, .accountDisabled, .notFound: .notAuthorized
        case .deviceLimitReached: .quotaExceeded
        default: .unspecifiedError
        }
    }

    /// Returns the reason for the end of a connection whose CONNECT is refused.
    ///
    /// - Parameter cause: the core's error that is the cause; nil if there is none.
    static func closeReason(for error: MQTTPacketError, because cause: HermesError?) -> CloseReason {
        if let cause { return .loginRefused(cause.code) }
        if error.reason == .notAuthorized { return .loginRefused(.forbidden) }
        return .malformed(WireError(.badBody, error.message))
    }

    /// Whether 3.1.1 has a return code for a reason. With any other reason, a connection is closed without a CONNACK.
    static func hasReturnCode(_ reason: MQTTReasonCode) -> Bool {
        switch reason {
        case .unsupportedProtocolVersion, .clientIdentifierNotValid, .serverUnavailable, .serverBusy,
            .badUserNameOrPassword, .notAuthorized, .banned, .badAuthenticationMethod, .quotaExceeded:
            true
        default: false
        }
    }

    /// Returns the reason code of a connection's end, for DISCONNECT; nil if none is sent.
    static func disconnectReason(for reason: CloseReason) -> MQTTReasonCode? {
        switch reason {
        case .goodbye, .finished, .slowReader, .loginBudget, .loginRefused: nil
        case .memory: .quotaExceeded
        case .rateLimited: .messageRateTooHigh
        case .malformed(let error): error.code == .frameTooLong ? .packetTooLarge : .malformedPacket
        case .notAuthenticated: .notAuthorized
        case .idle: .keepAliveTimeout
        // "The maximum connection time authorized for this connection has been exceeded" (table 3-10). 0x87 is for a
        // request that is not authorized, but the end of a token is not a request.
        case .tokenExpired: .maximumConnectTime
        case .attachment(.replaced): .sessionTakenOver
        case .attachment(.accountDisabled), .attachment(.accountDeleted), .attachment(.accountRenamed),
            .attachment(.revoked):
            .notAuthorized
        case .attachment(.shuttingDown), .shuttingDown: .serverShuttingDown
        }
    }

    static let tokenExpired = "the token has expired; connect again with a new one"

    /// Returns the reason string of a connection's end, for DISCONNECT; nil if there is none.
    static func disconnectText(for reason: CloseReason) -> String? {
        switch reason {
        case .goodbye, .finished, .slowReader, .loginBudget, .loginRefused: nil
        case .memory: CloseReason.memoryText
        case .rateLimited: CloseReason.rateText
        case .malformed(let error): error.message
        case .notAuthenticated: "CONNECT did not arrive in time"
        case .idle: "nothing has arrived for one and a half times the keep alive [MQTT-3.1.2-22]"
        case .tokenExpired: tokenExpired
        case .attachment(.replaced): DurableSessions.takenOver.message
        case .attachment(.accountDisabled): CloseReason.disabledText
        case .attachment(.accountDeleted): CloseReason.deletedText
        case .attachment(.accountRenamed): "the account has another name; log in again"
        case .attachment(.revoked): "the login was revoked; log in again"
        case .attachment(.shuttingDown), .shuttingDown: CloseReason.stoppingText
        }
    }

    /// Returns the error catalogue's number for the reason code with which the server ends a connection.
    ///
    /// - Parameter error: the core's error that is the cause; nil if there is none.
    static func code(of reason: MQTTReasonCode, _ error: HermesError? = nil) -> UInt32 {
        // In CONNACK, 0x88 stands for several errors of the server, for example if the server is stopping.
        if reason == .serverUnavailable, let error, error.code != .storageUnavailable { return error.code.rawValue }
        if error?.code == .replaced { return HermesError.Code.replaced.rawValue }
        return switch reason {
        case .packetTooLarge: WireError.Code.frameTooLong.rawValue
        case .malformedPacket, .protocolError, .receiveMaximumExceeded, .topicAliasInvalid, .topicFilterInvalid,
            .topicNameInvalid, .qosNotSupported, .retainNotSupported:
            WireError.Code.badBody.rawValue
        case .unspecifiedError, .serverUnavailable: HermesError.Code.internalError.rawValue
        case .serverShuttingDown: HermesError.Code.shuttingDown.rawValue
        case .implementationSpecificError: HermesError.Code.unsupported.rawValue
        default: HermesError.Code.forbidden.rawValue
        }
    }

    /// Returns the reason code of a failed publication, for PUBACK and PUBREC.
    static func publishReason(for error: HermesError) -> MQTTReasonCode {
        switch error.code {
        case .forbidden, .notAuthenticated: .notAuthorized
        case .overloaded, .rateLimited, .quotaExceeded: .quotaExceeded
        case .invalidArgument: .payloadFormatInvalid
        default: .unspecifiedError
        }
    }

    /// Returns the reason code of a granted subscription.
    static func granted(_ qos: QoS) -> MQTTReasonCode { MQTTReasonCode(rawValue: qos.rawValue) }
}
