// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The logins that the client abandoned before their answers arrived. An abandoned login may reach the server late and
/// replace a later login of the same client. Does no I/O.
///
/// A replaced client stops, so that two devices with the same id do not replace each other forever. But if an
/// abandoned login may be the cause, the client reconnects. Each login is blamed only once.
package struct StrayLogins: Sendable {
    /// The time at which the unanswered login was sent, by the device's clock, in milliseconds since 1970; nil if no
    /// login is unanswered.
    private var startedAt: Int64?
    /// The times at which logins were abandoned, oldest first.
    private var givenUp: [Int64]

    /// The largest number of remembered logins.
    private static let maxRemembered = 16
    /// The time for which a login is remembered, in milliseconds.
    private static let milliseconds: Int64 = 300_000

    /// Creates a list that continues the list of an earlier run; see ``unanswered``.
    package init(unanswered: [Int64] = []) { givenUp = unanswered.suffix(Self.maxRemembered) }

    /// The logins that may still reach the server, for the next run of the app.
    var unanswered: [Int64] { givenUp + (startedAt.map { [$0] } ?? []) }

    /// Records that a login is sent.
    package mutating func began(now: Int64 = WallClock.milliseconds()) { startedAt = now }

    /// Records that the login was answered.
    package mutating func answered() { startedAt = nil }

    /// Records that the connection is lost. An unanswered login then counts as abandoned.
    package mutating func connectionLost(now: Int64 = WallClock.milliseconds()) {
        guard startedAt != nil else { return }
        startedAt = nil
        givenUp = givenUp.suffix(Self.maxRemembered - 1) + [now]
    }

    /// Records that another login replaced this client's login.
    ///
    /// - Returns: whether the other login may be one that this client abandoned.
    package mutating func blame(now: Int64 = WallClock.milliseconds()) -> Bool {
        givenUp.removeAll { abs(now - $0) > Self.milliseconds }
        return givenUp.popLast() != nil
    }
}
