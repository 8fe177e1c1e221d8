// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What went wrong, for programs (``code``), for people (``message``) and for logs (``cause``).
///
/// The only error that leaves the core. Messages say what can be done about it and never hold a secret.
package struct HermesError: Error, Sendable {
    /// A stable number of the catalogue in `docs/errors.md`; never reused for something else.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }
    }

    package let code: Code
    /// For people, in English, at most 500 bytes of UTF-8.
    package let message: String
    /// When trying the same again makes sense; nil: it never does.
    package let retryAfter: Duration?
    /// What failed underneath, for logs alone; never sent to a client.
    package let cause: (any Error)?

    package init(_ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension HermesError.Code {
    // 1000…: who are you.
    /// The connection has not authenticated, and the request needs it.
    package static let notAuthenticated = Self(rawValue: 1001)
    /// The connection has already authenticated.
    package static let alreadyAuthenticated = Self(rawValue: 1002)
    /// Wrong name or password; which of the two is not told.
    package static let wrongCredentials = Self(rawValue: 1003)
    /// The token is unknown, revoked or expired.
    package static let invalidToken = Self(rawValue: 1004)
    /// The account is disabled.
    package static let accountDisabled = Self(rawValue: 1005)
    /// The nick name is taken.
    package static let nameTaken = Self(rawValue: 1006)
    /// Too many failed logins; see ``HermesError/retryAfter``.
    package static let loginDelayed = Self(rawValue: 1007)
    /// Registration is switched off.
    package static let registrationClosed = Self(rawValue: 1008)
    /// The same device has logged in on another connection.
    package static let replaced = Self(rawValue: 1009)
    /// The account has as many devices as it may have; remove one first.
    package static let deviceLimitReached = Self(rawValue: 1010)
    /// Registration needs an invitation, and the one given is missing, unknown, used up or expired.
    package static let invitationRequired = Self(rawValue: 1011)

    // 2000…: what do you ask.
    /// A field is missing or has a value that is not allowed; the message names it.
    package static let invalidArgument = Self(rawValue: 2001)
    /// No such account, conversation, message, device or room.
    package static let notFound = Self(rawValue: 2002)
    /// The principal may not do this.
    package static let forbidden = Self(rawValue: 2003)
    /// The same client id was used with other content.
    package static let clientIDConflict = Self(rawValue: 2004)
    /// The server does not offer this.
    package static let unsupported = Self(rawValue: 2005)
    /// Larger than the limits allow; the message names the limit.
    package static let tooLarge = Self(rawValue: 2006)

    // 3000…: not now.
    /// More requests per second than allowed, or more contact requests or news of groups an hour.
    package static let rateLimited = Self(rawValue: 3001)
    /// The server has more to do than it can; nothing was stored.
    package static let overloaded = Self(rawValue: 3002)
    /// The disk is full or the store cannot write; nothing was stored.
    package static let storageUnavailable = Self(rawValue: 3003)
    /// The server is stopping.
    package static let shuttingDown = Self(rawValue: 3004)
    /// The receiver's inbox is full, or the sender's share of it; nothing was stored.
    package static let inboxFull = Self(rawValue: 3005)
    /// Too much of what the sender sent waits unread, in all inboxes together; nothing was stored.
    package static let tooMuchUnread = Self(rawValue: 3006)

    // 9000…: our fault.
    /// A bug of the server; the log has the cause.
    package static let internalError = Self(rawValue: 9001)
}
