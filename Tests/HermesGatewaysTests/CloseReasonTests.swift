// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// The last message of each protocol, for every reason why a connection ends.
@Suite struct CloseReasonTests {
    @Test func `LiveRoom and QSIOP tell why, where there is somebody to tell`() {
        let told: [(CloseReason, HermesError.Code)] = [
            (.notAuthenticated, .notAuthenticated), (.shuttingDown, .shuttingDown),
            (.attachment(.replaced), .replaced), (.attachment(.accountDisabled), .accountDisabled),
            (.attachment(.accountDeleted), .accountDisabled), (.attachment(.accountRenamed), .notAuthenticated),
            (.attachment(.revoked), .invalidToken), (.tokenExpired, .invalidToken),
            (.attachment(.shuttingDown), .shuttingDown), (.memory, .overloaded), (.rateLimited, .rateLimited),
        ]
        for (reason, code) in told {
            #expect(LiveRoomTranslation.kick(for: reason)?.code == code)
            #expect(QSIOPTranslation.answer(for: reason)?.code == code.rawValue)
        }
        for reason in [CloseReason.goodbye, .finished, .slowReader, .loginBudget, .loginRefused(.wrongCredentials)] {
            #expect(LiveRoomTranslation.kick(for: reason) == nil)
            #expect(QSIOPTranslation.answer(for: reason) == nil)
        }
        // A viewer that sends texts but no heartbeats is still there, and must get the reason why it is closed.
        #expect(LiveRoomTranslation.kick(for: .idle)?.code == .notAuthenticated)
        #expect(QSIOPTranslation.answer(for: .idle) == nil)
    }

    private static let reasons: [CloseReason] = [
        .goodbye, .finished, .malformed(WireError(.badBody, "")), .notAuthenticated, .tokenExpired,
        .loginBudget, .idle, .slowReader,
        .memory, .rateLimited, .attachment(.replaced), .attachment(.accountDisabled), .attachment(.accountDeleted),
        .attachment(.accountRenamed),
        .attachment(.revoked),
        .attachment(.shuttingDown), .shuttingDown, .loginRefused(.wrongCredentials), .loginRefused(.forbidden),
        .loginRefused(.loginDelayed), .loginRefused(.storageUnavailable),
    ]

    @Test func `a refused login has a kind of its own`() {
        let kinds: [(HermesError.Code, CloseReason.Kind)] = [
            (.wrongCredentials, .badCredentials), (.invalidToken, .badCredentials), (.accountDisabled, .notAuthorized),
            (.notAuthenticated, .notAuthorized), (.forbidden, .notAuthorized), (.loginDelayed, .loginDelayed),
            (.overloaded, .loginRefused), (.storageUnavailable, .loginRefused),
        ]
        for (code, kind) in kinds { #expect(CloseReason.loginRefused(code).kind == kind) }
        let wrong = MQTTPacketError(.badUserNameOrPassword, "wrong name or password")
        let cause = HermesError(.wrongCredentials, "wrong name or password")
        #expect(MQTTTranslation.closeReason(for: wrong, because: cause).kind == .badCredentials)
        let will = MQTTPacketError(.notAuthorized, "the will's topic may not be published to")
        #expect(MQTTTranslation.closeReason(for: will, because: nil).kind == .notAuthorized)
        #expect(MQTTTranslation.closeReason(for: MQTTPacketError(.protocolError, ""), because: nil).kind == .malformed)
    }

    @Test func `every kind of reason has an example here`() {
        #expect(Set(Self.reasons.map(\.kind)) == Set(CloseReason.Kind.allCases))
    }

    @Test func `the native protocol tells a number for every end that it tells, the catalogue's`() {
        for reason in Self.reasons {
            let kicked = NativeTranslation.kicked(reason)
            #expect((kicked == nil) == (reason.code == 0), "\(reason.label)")
            #expect(kicked.map { $0.code == reason.code } ?? true)
            // The reason `protocol` goes with the error numbers for bytes, and only with them. With this reason, a
            // client searches for the request that caused the breach.
            #expect((kicked?.reason == .protocol) == (4000..<5000).contains(reason.code))
            if let error = IMPBTranslation.farewell(reason) { #expect(error.code.rawValue == reason.code) }
            if let kick = LiveRoomTranslation.kick(for: reason) { #expect(kick.code.rawValue == reason.code) }
        }
        let long = CloseReason.malformed(WireError(.frameTooLong, "long"))
        #expect(NativeTranslation.kicked(long)?.code == 4003)
        #expect(long.webSocketCode == 1009)
        let expected: [UInt16] = [
            1000, 1000, 1002, 1008, 1008, 1013, 1008, 1008, 1013, 1008, 1008, 1008, 1008, 1008, 1008, 1001, 1001, 1000,
            1000, 1000, 1000,
        ]
        #expect(Self.reasons.map(\.webSocketCode) == expected)
        // MQTT's reason codes are translated in the same way.
        for (reason, code) in [
            (MQTTReasonCode.packetTooLarge, 1009), (.malformedPacket, 1002), (.protocolError, 1002),
            (.receiveMaximumExceeded, 1002), (.topicAliasInvalid, 1002), (.unspecifiedError, 1011),
            (.notAuthorized, 1008), (.badUserNameOrPassword, 1008), (.quotaExceeded, 1008),
            (.serverUnavailable, 1011), (.serverShuttingDown, 1001), (.qosNotSupported, 1002),
            (.retainNotSupported, 1002), (.administrativeAction, 1008),
        ] as [(MQTTReasonCode, UInt16)] {
            #expect(CloseReason.webSocketCode(for: MQTTTranslation.code(of: reason)) == code)
        }
        // These are the codes for a refused CONNECT.
        for (cause, code) in [
            (.storageUnavailable, 1011), (.internalError, 1011), (.shuttingDown, 1001), (.nameTaken, 1008),
            (.registrationClosed, 1008), (.invalidToken, 1008), (.overloaded, 1008),
        ] as [(HermesError.Code, UInt16)] {
            let error = HermesError(cause, "")
            let number = MQTTTranslation.code(of: MQTTTranslation.connackReason(for: error), error)
            #expect(CloseReason.webSocketCode(for: number) == code)
        }
        // Only registered codes are used (RFC 6455, section 7.4.1, and IANA's 1013).
        let codes = Set(Self.reasons.map(\.webSocketCode))
        #expect(codes.isSubset(of: [1000, 1001, 1002, 1008, 1013]))
    }
}
