// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An error with a ``code`` for programs, a ``message`` for people and a ``cause`` for logs.
///
/// No other type of error leaves the core. A message names a remedy and never contains a secret.
public struct HermesError: Error, Sendable {
    /// A stable number from the catalogue in `docs/errors.md`. A number is never reused.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The number.
        public let rawValue: UInt32

        /// Creates the code with a number.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    package let code: Code
    /// The text for people. It is in English, and has at most 500 bytes of UTF-8.
    package let message: String
    /// The time after which a retry makes sense; nil if the error does not name a time.
    package let retryAfter: Duration?
    /// The underlying error. It is logged, but never sent to a client.
    package let cause: (any Error)?

    package init(_ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension HermesError.Code {
    /// Returns the code for a value that is refused: `.tooLarge` if the value is longer than allowed, otherwise
    /// `.invalidArgument`.
    package static func ofValue(_ length: Int, atMost limit: Int) -> Self {
        length > limit ? .tooLarge : .invalidArgument
    }

    // Codes from 1000 concern authentication.
    /// The request requires authentication, and the connection has not authenticated.
    package static let notAuthenticated = Self(rawValue: 1001)
    /// The connection has already authenticated.
    package static let alreadyAuthenticated = Self(rawValue: 1002)
    /// The name or the password is wrong; the answer does not say which of them.
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
    /// The account has the maximum number of devices; a device must be removed first.
    package static let deviceLimitReached = Self(rawValue: 1010)
    /// Registration needs an invitation code; the code is missing, unknown, used up or expired.
    package static let invitationRequired = Self(rawValue: 1011)

    // Codes from 2000 concern the request.
    /// A field is missing or has an invalid value; ``HermesError/message`` names the field.
    package static let invalidArgument = Self(rawValue: 2001)
    /// There is no such account, conversation, message, device or room.
    package static let notFound = Self(rawValue: 2002)
    /// The principal has no permission for the request.
    package static let forbidden = Self(rawValue: 2003)
    /// The client id or idempotency key was already used with different content, or a push with this key is under way.
    package static let clientIDConflict = Self(rawValue: 2004)
    /// The server does not support the request.
    package static let unsupported = Self(rawValue: 2005)
    /// A part of the request is larger than a limit allows; ``HermesError/message`` names the limit.
    package static let tooLarge = Self(rawValue: 2006)
    /// A limit is reached; ``HermesError/message`` names the limit. There are limits for accounts, for the server, and
    /// for the network addresses of clients without an account.
    package static let quotaExceeded = Self(rawValue: 2007)

    // Codes from 3000 are temporary errors. The client can try again later.
    /// There were too many requests per second, too many contact requests or group changes per hour, or too many bytes
    /// of messages per day.
    package static let rateLimited = Self(rawValue: 3001)
    /// The server is overloaded; nothing was stored.
    package static let overloaded = Self(rawValue: 3002)
    /// The disk is full or the store cannot write; nothing was stored.
    package static let storageUnavailable = Self(rawValue: 3003)
    /// The server is stopping.
    package static let shuttingDown = Self(rawValue: 3004)
    /// The receiver's inbox or the sender's share of that inbox is full; nothing was stored.
    package static let inboxFull = Self(rawValue: 3005)
    /// The sender's 1:1 messages that no device has acknowledged have too many bytes in total; nothing was stored.
    package static let tooMuchUnread = Self(rawValue: 3006)

    // Codes from 9000 are faults of the server.
    /// The server has a bug. The log names the cause.
    package static let internalError = Self(rawValue: 9001)
}
