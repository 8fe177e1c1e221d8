// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error of the client: a ``code`` for programs and a ``message`` for people.
///
/// ```swift
/// do {
///     try await client.logIn(.token(token))
/// } catch let error as HermesClientError where error.code == .invalidToken {
///     askForPassword()
/// }
/// ```
public struct HermesClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A stable error number. The client's own numbers are below 1000. The server's numbers begin at 1000;
    /// docs/errors.md lists them.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The number.
        public let rawValue: UInt32

        /// Wraps a number.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    /// The number of the error, for programs.
    public let code: Code
    /// The description of the error and of its remedy, in English, for people.
    public let message: String
    /// The time to wait before a retry; nil if the error names no time.
    ///
    /// A refused login without this time is final. Other failures can be temporary even without this time. For
    /// example, after ``Code/connectionLost`` or ``Code/timedOut``, the outbox sends a message again by itself.
    public let retryAfter: Duration?
    private let ignored: Cause

    /// The error that caused this one, for logs; nil if there is none. Comparisons of errors ignore the cause.
    public var cause: (any Error)? { ignored.error }

    /// A cause that equals every other cause, so that comparisons of errors ignore it.
    private struct Cause: Hashable {
        let error: (any Error)?

        static func == (left: Self, right: Self) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    /// Creates an error, for example in an app's tests.
    ///
    /// - Parameters:
    ///   - code: the number of the error, for programs.
    ///   - message: the description of the error, for people.
    ///   - retryAfter: the time to wait before a retry; nil if no time is known.
    ///   - cause: the error that caused this one; nil if there is none.
    public init(_ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
        ignored = Cause(error: cause)
    }

    /// Creates the error for a connection that the server ended, from the server's error number and text.
    package init(ending code: UInt32, _ reason: String) {
        self.init(code == Self.replacedOnServer ? .replaced : Code(rawValue: code), reason)
    }

    /// Returns the same error with a time to wait before a retry.
    func retried(after delay: Duration) -> Self { Self(code, message, retryAfter: delay, cause: cause) }

    /// Whether the server says that it cannot do this now, for example because it is stopping, overloaded or failing.
    var isTroubleOfServer: Bool { (3000..<4000).contains(code.rawValue) || code.rawValue >= 9000 }

    /// Whether the error comes from the client itself, and not from a server or broker.
    var isOwn: Bool { code.rawValue < 500 }

    /// Whether the number says that the client broke the protocol.
    var isBreach: Bool { (4000..<5000).contains(code.rawValue) }

    /// The server's number for ``Code/replaced``.
    package static let replacedOnServer: UInt32 = 1009

    /// The message and the number.
    public var description: String { "\(message) [\(code.rawValue)]" }
}

extension HermesClientError.Code {
    // The client's own errors.
    /// The connection could not be opened.
    public static let cannotConnect = Self(rawValue: 101)
    /// The connection ended before the answer arrived; the server may have carried out the request.
    public static let connectionLost = Self(rawValue: 102)
    /// The server did not answer in time.
    public static let timedOut = Self(rawValue: 103)
    /// The app closed the client, or did not log in.
    public static let closed = Self(rawValue: 104)
    /// The server broke the protocol.
    public static let protocolViolation = Self(rawValue: 105)
    /// The same device logged in elsewhere.
    public static let replaced = Self(rawValue: 106)
    /// The login was revoked: the token or device was removed, or the password changed.
    public static let revoked = Self(rawValue: 107)
    /// The server ended the connection; ``HermesClientError/message`` gives the reason.
    public static let kicked = Self(rawValue: 108)
    /// The request cannot be encoded: it is too long, or the protocol has no place for a value.
    public static let notEncodable = Self(rawValue: 109)
    /// The TLS options are invalid (for example, a file is missing or is not a certificate), or the server's key is not
    /// pinned.
    public static let badTLS = Self(rawValue: 110)
    /// The app is suspended. The client has closed the connection, and connects again when the app is no longer
    /// suspended.
    public static let suspended = Self(rawValue: 111)
    /// The local store is full.
    public static let storeFull = Self(rawValue: 112)
    /// The local store cannot be read or written.
    public static let storeFailed = Self(rawValue: 113)
    /// The outbox is full: wait for a connection, or discard failed messages.
    public static let outboxFull = Self(rawValue: 114)
    /// The app discarded the message before it was sent.
    public static let discarded = Self(rawValue: 115)

    // The server's errors; docs/errors.md lists all of them.
    /// The name or the password is wrong.
    public static let wrongCredentials = Self(rawValue: 1003)
    /// The token is unknown, revoked or expired.
    public static let invalidToken = Self(rawValue: 1004)
    /// The account is disabled, or has just been deleted.
    public static let accountDisabled = Self(rawValue: 1005)
    /// The nick name is taken.
    public static let nameTaken = Self(rawValue: 1006)
    /// There were too many failed attempts to log in or to register; see ``HermesClientError/retryAfter``.
    public static let loginDelayed = Self(rawValue: 1007)
    /// Registration is closed: only the operator creates accounts.
    public static let registrationClosed = Self(rawValue: 1008)
    /// The account has reached its limit on devices; the user must first remove one.
    public static let deviceLimitReached = Self(rawValue: 1010)
    /// Registration needs the code of an invitation, and the code is missing, unknown, used up or expired.
    public static let invitationRequired = Self(rawValue: 1011)
    /// There is no such account, conversation, message, device or room.
    public static let notFound = Self(rawValue: 2002)
    /// The account lacks a permission, for example to write to an account that blocked it.
    public static let forbidden = Self(rawValue: 2003)
    /// The same client id was used for another message.
    public static let clientIDConflict = Self(rawValue: 2004)
    /// The server does not offer the requested function.
    package static let unsupported = Self(rawValue: 2005)
    /// The request has an invalid value; ``HermesClientError/message`` names it.
    public static let invalidArgument = Self(rawValue: 2001)
    /// The message or value is larger than the server's limit.
    public static let tooLarge = Self(rawValue: 2006)
    /// The account or the server has reached a limit; ``HermesClientError/message`` names it.
    public static let quotaExceeded = Self(rawValue: 2007)
    /// The client sent too much in too short a time, or too many accounts were registered; see
    /// ``HermesClientError/retryAfter``.
    public static let rateLimited = Self(rawValue: 3001)
    /// The server is overloaded and has stored nothing.
    public static let overloaded = Self(rawValue: 3002)
    /// The receiver's inbox, or this sender's share of it, is full. The client sends the message again later.
    package static let inboxFull = Self(rawValue: 3005)
    /// A frame was longer than the server accepts.
    static let frameTooLong = Self(rawValue: 4003)
}
