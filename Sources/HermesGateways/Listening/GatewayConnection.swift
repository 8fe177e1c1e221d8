// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire

/// The server's side of one connection of one protocol. Lives on the connection's event loop and is touched only there:
/// no locks, and no tasks except those for slow requests (``Connection/hold()``).
///
/// This object keeps its ``Connection`` as a `let` and writes to it. The connection releases this object after the
/// connection is closed.
package protocol GatewayConnection: AnyObject, ConnectionEvents {
    /// Decodes input into frames.
    associatedtype Decoder: FrameDecoder

    /// Whether a connection must call ``Connection/authenticated()`` within the time limit.
    static var requiresAuthentication: Bool { get }
    /// Whether each frame counts as a sign of life of the peer. If false, this object calls ``Connection/touch()`` for
    /// the frames that count.
    static var everyFrameIsLife: Bool { get }
    /// Whether ``ConnectionLimits/requestsPerSecond`` applies; false where the protocol's flow control and the
    /// subscribers' pace slow a peer down.
    static var hasRequestLimit: Bool { get }
    /// Whether reading pauses while the peer does not read; true for protocols whose requests have answers.
    static var pausesReadingWhenStuck: Bool { get }

    /// The longest body of a frame before the login, in bytes; ``ConnectionLimits/maxLoginFrameBytes`` may set a lower
    /// limit. The limit is no larger than a login may need, because these bytes are not charged to any account yet.
    static var maxLoginFrameBytes: Int { get }

    /// Creates a decoder of the connection's input.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted.
    func makeDecoder(maxFrameBytes: Int) -> Decoder

    /// Handles a frame. Bodies are slices of the read buffer, so an implementation must copy what it keeps.
    func received(_ frame: Decoder.Frame)

    /// Handles a frame that arrived before the peer closed and has not been examined yet. The frame now matters only
    /// for how the connection ended.
    func receivedLast(_ frame: Decoder.Frame)

    /// Whether the peer still has to confirm something that was sent to it. If so, the next bytes from it are most
    /// likely a confirmation.
    var awaitsConfirmation: Bool { get }
}

extension GatewayConnection {
    package var awaitsConfirmation: Bool { false }

    package func makeDecoder(maxFrameBytes: Int) -> Decoder { Decoder(maxFrameBytes: maxFrameBytes) }

    package func receivedLast(_ frame: Decoder.Frame) {}

    package static var requiresAuthentication: Bool { true }
    package static var everyFrameIsLife: Bool { true }
    package static var hasRequestLimit: Bool { true }
    package static var pausesReadingWhenStuck: Bool { true }
    /// The default leaves room for a JSON Web Token, and more.
    package static var maxLoginFrameBytes: Int { 16_384 }
}

/// Events of a connection other than frames, on the connection's event loop.
package protocol ConnectionEvents: AnyObject {
    /// Called when the connection is ready.
    func opened()

    /// Called before the connection is closed. Writes the protocol's last packet, if the protocol has one; output is
    /// still flushed.
    func farewell(_ reason: CloseReason)

    /// Called last, when the connection is closed. Detaches and releases everything.
    func closed()

    /// Called when the queue is empty again, so that writes no longer have to wait.
    func becameWritable()

    /// Called when the operating system has taken everything that was written before ``Connection/reportWritten(_:)``.
    func written(_ mark: UInt64)

    /// Called when entries were committed to the inbox of this connection's user.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Called with an ephemeral event for this connection.
    func ephemeralArrived(_ event: EphemeralEvent)

    /// Called when a message that ``Connection/send(_:from:correlation:messages:)`` sent is committed or has failed.
    func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>)

    /// Called when the topic rules were replaced, or when the account has a new name. Nothing that was derived from the
    /// earlier rules or the earlier name may be used any more. (A connection of MQTT ends when its account is renamed.)
    /// There is no default: each protocol has rules to apply.
    func accessChanged()

    /// Called at the time that ``Connection/wake(in:)`` requested.
    func woken()

    /// Returns the code of the WebSocket close frame (RFC 6455, section 7.4.1) for a connection that the server ends.
    func webSocketCode(for reason: CloseReason) -> UInt16

    /// Removes the client from a room, if an operator removes the client's user, or everybody, from the room.
    ///
    /// - Returns: whether the removal is meant for this connection, and the connection was in that room.
    func removed(by expulsion: RoomExpulsion) -> Bool

    /// The client as operators see it; nil if there is no client yet, or if the protocol's clients are not shown to
    /// operators.
    var operated: (any OperatedClient)? { get }
}

extension ConnectionEvents {
    package func opened() {}
    package func farewell(_ reason: CloseReason) {}
    package func closed() {}
    package func becameWritable() {}
    package func written(_ mark: UInt64) {}
    package func inboxAdvanced(_ entries: [InboxEntry]) {}
    package func ephemeralArrived(_ event: EphemeralEvent) {}
    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {}
    package func woken() {}
    package func webSocketCode(for reason: CloseReason) -> UInt16 { reason.webSocketCode }
    package func removed(by expulsion: RoomExpulsion) -> Bool { false }
    package var operated: (any OperatedClient)? { nil }
}

/// The reason why the server ends a connection.
package enum CloseReason: Sendable {
    /// The peer has left and reads no more: do not wait for it.
    case goodbye
    /// The protocol's side ends the connection, for example because the peer asked for it.
    case finished
    /// The bytes broke the protocol.
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

    /// The reason's number in the catalogue of errors, for protocols that have a field for it; 0: the client gets no
    /// reason.
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

    /// The kinds of reasons that metrics and logs tell apart, with their labels.
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
