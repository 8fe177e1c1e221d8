// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire

/// The reason why the server ends a connection.
package enum CloseReason: Sendable {
    /// The peer has left and reads no more: do not wait for it.
    case goodbye
    /// The protocol's side ends the connection, for example because the peer asked for it.
    case finished
    /// The peer's bytes violate the protocol.
    case malformed(WireError)
    /// The peer did not authenticate in time.
    case notAuthenticated
    /// The peer's login was refused with this error, and the protocol's answer says so.
    case loginRefused(HermesError.Code)
    /// The peer's token has expired.
    case tokenExpired
    /// All unauthenticated connections together have sent too much, and this one has sent the most.
    case loginBudget
    /// The peer gave no sign of life for too long.
    case idle
    /// The peer does not read what is sent to it.
    case slowReader
    /// The connection uses the most memory, and memory is short.
    case memory
    /// The connection has exceeded its rate for a long time.
    case rateLimited
    /// The core ended the attachment.
    case attachment(AttachmentEnd)
    case shuttingDown

    /// The reason's number in the catalogue of errors, for protocols that have a field for it; 0 if the client gets
    /// no reason.
    package var code: UInt32 {
        switch self {
        case .goodbye, .finished, .loginRefused: 0
        case .malformed(let error): error.code.rawValue
        case .notAuthenticated, .idle, .attachment(.accountRenamed): HermesError.Code.notAuthenticated.rawValue
        case .tokenExpired, .attachment(.revoked): HermesError.Code.invalidToken.rawValue
        case .loginBudget, .memory: HermesError.Code.overloaded.rawValue
        case .slowReader, .rateLimited: HermesError.Code.rateLimited.rawValue
        case .attachment(.replaced): HermesError.Code.replaced.rawValue
        case .attachment(.accountDisabled), .attachment(.accountDeleted): HermesError.Code.accountDisabled.rawValue
        case .attachment(.shuttingDown), .shuttingDown: HermesError.Code.shuttingDown.rawValue
        }
    }

    /// The code of the WebSocket close frame.
    var webSocketCode: UInt16 { Self.webSocketCode(for: code) }

    /// Returns the code of the WebSocket close frame (RFC 6455, section 7.4.1) for a number in the catalogue of errors.
    static func webSocketCode(for code: UInt32) -> UInt16 {
        switch code {
        case 0: 1000
        case HermesError.Code.shuttingDown.rawValue: 1001
        case WireError.Code.badText.rawValue: 1007
        case WireError.Code.frameTooLong.rawValue: 1009
        case 4000..<5000: 1002
        case HermesError.Code.overloaded.rawValue: 1013
        case HermesError.Code.internalError.rawValue: 1011
        default: 1008
        }
    }

    /// The kinds of reasons that metrics and logs distinguish, with their labels.
    enum Kind: String, CaseIterable, Sendable {
        case goodbye
        case finished
        case malformed
        case notAuthenticated = "not_authenticated"
        case tokenExpired = "token_expired"
        case loginBudget = "login_budget"
        case idle
        case slowReader = "slow_reader"
        case memory
        case rateLimited = "rate_limited"
        case replaced
        case accountDisabled = "account_disabled"
        case accountDeleted = "account_deleted"
        case accountRenamed = "account_renamed"
        case revoked
        case shuttingDown = "shutting_down"
        case badCredentials = "bad_credentials"
        case notAuthorized = "not_authorized"
        case loginDelayed = "login_delayed"
        case loginRefused = "login_refused"

        /// Creates the kind of a refused login.
        ///
        /// - Parameter failure: nil if the client's credentials are not the reason.
        init(_ failure: LoginFailure?) {
            self =
                switch failure {
                case .badCredentials?: .badCredentials
                case .notAuthorized?: .notAuthorized
                case .delayed?: .loginDelayed
                case nil: .loginRefused
                }
        }
    }

    var kind: Kind {
        switch self {
        case .goodbye: .goodbye
        case .finished: .finished
        case .malformed: .malformed
        case .notAuthenticated: .notAuthenticated
        case .loginRefused(let code): Kind(LoginFailure(code))
        case .tokenExpired: .tokenExpired
        case .loginBudget: .loginBudget
        case .idle: .idle
        case .slowReader: .slowReader
        case .memory: .memory
        case .rateLimited: .rateLimited
        case .attachment(.replaced): .replaced
        case .attachment(.accountDisabled): .accountDisabled
        case .attachment(.accountDeleted): .accountDeleted
        case .attachment(.accountRenamed): .accountRenamed
        case .attachment(.revoked): .revoked
        case .attachment(.shuttingDown), .shuttingDown: .shuttingDown
        }
    }

    /// The label in metrics and logs.
    package var label: String { kind.rawValue }
}

extension CloseReason {
    static let memoryText = "this connection holds the most memory, and memory is short (limits.memory)"
    static let rateText = "exceeded limits.requestsPerSecond for longer than limits.throttled"
    static let disabledText = "the account was disabled"
    static let deletedText = "the account was deleted"
    static let stoppingText = "the server is stopping"
}
