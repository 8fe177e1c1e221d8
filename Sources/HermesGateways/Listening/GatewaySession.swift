// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire

/// What serves one connection of one protocol. Lives on the connection's event loop and is touched only there: no
/// locks, no tasks of its own beside those that it starts for slow requests (``Connection/hold()``).
///
/// It keeps its ``Connection`` `unowned`-strongly as a `let` and writes to it; the connection lets go of the session
/// once it is closed.
package protocol GatewaySession: AnyObject, ConnectionEvents {
    /// Cuts what arrives into frames.
    associatedtype Decoder: FrameDecoder

    /// Whether a connection has to call ``Connection/authenticated()`` within the limit of time.
    static var requiresAuthentication: Bool { get }
    /// Whether each frame counts as a sign of life; else the session calls ``Connection/touch()`` itself.
    static var everyFrameIsLife: Bool { get }
    /// Whether ``ConnectionLimits/requestsPerSecond`` holds; false where the protocol's own flow control and the
    /// subscribers' pace slow a peer down.
    static var hasRequestLimit: Bool { get }
    /// Whether the connection is read from while the peer does not read itself; true where requests have answers.
    static var pausesReadingWhenStuck: Bool { get }

    /// A frame came. Bodies are slices of the read buffer: what is kept longer has to be copied.
    func received(_ frame: Decoder.Frame)

    /// A frame came before the peer closed, and could not be looked at then: only what says how it ended matters now.
    func receivedLast(_ frame: Decoder.Frame)
}

extension GatewaySession {
    package func receivedLast(_ frame: Decoder.Frame) {}

    package static var requiresAuthentication: Bool { true }
    package static var everyFrameIsLife: Bool { true }
    package static var hasRequestLimit: Bool { true }
    package static var pausesReadingWhenStuck: Bool { true }
}

/// What happens to a connection beside frames that come. All called on the connection's event loop.
package protocol ConnectionEvents: AnyObject {
    /// The connection is ready.
    func opened()

    /// The connection will be closed: write the protocol's last words, if it has any. What is written still goes out.
    func farewell(_ reason: CloseReason)

    /// The connection is closed: detach, let go of everything. The last call.
    func closed()

    /// All that waited was taken by the operating system; writes go through again.
    func becameWritable()

    /// What was written before ``Connection/reportWritten(_:)`` was taken by the operating system.
    func written(_ mark: UInt64)

    /// Entries were committed to the inbox of this session's user.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Something that matters only now.
    func ephemeralArrived(_ event: EphemeralEvent)

    /// A message that was given to the core with ``Connection/send(_:from:correlation:)`` is committed, or failed.
    func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>)

    /// Other rules for topics are in force.
    func accessChanged()

    /// The time that was asked for with ``Connection/wake(in:)`` has come.
    func woken()

    /// An operator removes a user from a room.
    /// - Returns: whether this connection was that user's, and in that room.
    func removed(_ account: Account, from room: RoomName) -> Bool
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
    package func accessChanged() {}
    package func woken() {}
    package func removed(_ account: Account, from room: RoomName) -> Bool { false }
}

/// Why the server ends a connection.
package enum CloseReason: Sendable {
    /// The peer has said that it leaves and reads no more: there is nothing to wait for.
    case goodbye
    /// The peer asked for it, or it did what ends a connection by the protocol.
    case finished
    /// Bytes that are not the protocol's.
    case malformed(WireError)
    /// Not authenticated in time.
    case notAuthenticated
    /// The token that the peer was let in with has ended.
    case tokenExpired
    /// All that strangers have sent is too much, and this one has sent most.
    case loginBudget
    /// No sign of life.
    case idle
    /// The peer does not read what is sent to it.
    case slowReader
    /// What waits for it takes more memory than anybody else's, and there is too little for all.
    case memory
    /// For a long time it has asked for more than it may.
    case rateLimited
    /// The core ended the session.
    case session(SessionEnd)
    case shuttingDown

    /// All labels that there are.
    static let labels = [
        "goodbye", "finished", "malformed", "not_authenticated", "token_expired", "login_budget", "idle", "slow_reader",
        "memory", "rate_limited", "replaced", "account_disabled", "account_deleted", "account_renamed", "revoked",
        "shutting_down",
    ]

    /// The label in metrics and logs; one of ``labels``.
    package var label: String {
        switch self {
        case .goodbye: "goodbye"
        case .finished: "finished"
        case .malformed: "malformed"
        case .notAuthenticated: "not_authenticated"
        case .tokenExpired: "token_expired"
        case .loginBudget: "login_budget"
        case .idle: "idle"
        case .slowReader: "slow_reader"
        case .memory: "memory"
        case .rateLimited: "rate_limited"
        case .session(.replaced): "replaced"
        case .session(.accountDisabled): "account_disabled"
        case .session(.accountDeleted): "account_deleted"
        case .session(.accountRenamed): "account_renamed"
        case .session(.revoked): "revoked"
        case .session(.shuttingDown), .shuttingDown: "shutting_down"
        }
    }
}
