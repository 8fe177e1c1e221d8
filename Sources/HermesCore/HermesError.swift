// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error with a ``code`` for programs, a ``message`` for people and a ``cause`` for logs.
///
/// No other type of error leaves the core. A message names a remedy and never contains a secret.
public struct HermesError: Error, Sendable {
    /// A stable number from the catalogue in `docs/errors.md`; never reused.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The number.
        public let rawValue: UInt32

        /// Creates the code with a number.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    package let code: Code
    /// The text for people: in English, at most 500 bytes of UTF-8.
    package let message: String
    /// The time after which a retry makes sense; nil: the error does not name one.
    package let retryAfter: Duration?
    /// The underlying error, for logs only; never sent to a client.
    package let cause: (any Error)?

    package init(_ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension HermesError.Code {
    /// Returns the code for a value that is refused: `.tooLarge` if it is longer than allowed, otherwise
    /// `.invalidArgument`.
    package static func ofValue(_ length: Int, atMost limit: Int) -> Self {
        length > limit ? .tooLarge : .invalidArgument
    }

    // 1000…: authentication.
    /// The request requires authentication, and the connection has not authenticated.
    package static let notAuthenticated = Self(rawValue: 1001)
    /// The connection has already authenticated.
    package static let alreadyAuthenticated = Self(rawValue: 1002)
    /// The name or the password is wrong; the answer does not say which.
    package static let wrongCredentials = Self(rawValue: 1003)
    /// The token is unknown, revoked or expired.
    package static let invalidToken = Self(rawValue: 1004)
    /// The account is disabled.
    package static let accountDisabled = Self(rawValue: 1005)
    /// The nick name is taken.
    package static let nameTaken = Self(rawValue: 1006)
    /// There were too many failed attempts to log in or to register; see ``HermesError/retryAfter``.
    package static let loginDelayed = Self(rawValue: 1007)
    /// Registration is switched off.
    package static let registrationClosed = Self(rawValue: 1008)
    /// The same device has logged in on another connection.
    package static let replaced = Self(rawValue: 1009)
    /// The account has as many devices as it may have; remove one first.
    package static let deviceLimitReached = Self(rawValue: 1010)
    /// Registration needs the code of an invitation; the code is missing, unknown, used up or expired.
    package static let invitationRequired = Self(rawValue: 1011)

    // 2000…: the request.
    /// A field is missing or has an invalid value; ``HermesError/message`` names the field.
    package static let invalidArgument = Self(rawValue: 2001)
    /// There is no such account, conversation, message, device or room.
    package static let notFound = Self(rawValue: 2002)
    /// The principal may not do this.
    package static let forbidden = Self(rawValue: 2003)
    /// The same client id or idempotency key was used with other content, or a push under this key is under way.
    package static let clientIDConflict = Self(rawValue: 2004)
    /// The server does not offer this.
    package static let unsupported = Self(rawValue: 2005)
    /// Something in the request is larger than the limits allow; ``HermesError/message`` names the limit.
    package static let tooLarge = Self(rawValue: 2006)
    /// The account, the address of a client without an account, or the server has reached a limit;
    /// ``HermesError/message`` names the limit.
    package static let quotaExceeded = Self(rawValue: 2007)

    // 3000…: temporary; try again later.
    /// Too many requests per second, too many contact requests or group changes per hour, or too many bytes of messages
    /// per day.
    package static let rateLimited = Self(rawValue: 3001)
    /// The server is overloaded; nothing was stored.
    package static let overloaded = Self(rawValue: 3002)
    /// The disk is full or the store cannot write; nothing was stored.
    package static let storageUnavailable = Self(rawValue: 3003)
    /// The server is stopping.
    package static let shuttingDown = Self(rawValue: 3004)
    /// The receiver's inbox or the sender's share of that inbox is full; nothing was stored.
    package static let inboxFull = Self(rawValue: 3005)
    /// Too many bytes of the sender's 1:1 messages, in all inboxes together, are not acknowledged by any device;
    /// nothing was stored.
    package static let tooMuchUnread = Self(rawValue: 3006)

    // 9000…: faults of the server.
    /// A bug in the server; the log has the cause.
    package static let internalError = Self(rawValue: 9001)
}
