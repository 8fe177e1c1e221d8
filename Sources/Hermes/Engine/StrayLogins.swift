// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Logins that were given up before their answers came. Such a login may reach the server late and take the place of a
/// later one of the same client. Does no I/O; a value in a link.
///
/// A replaced client stops, so that two devices with one id do not replace each other forever. But if one of these
/// logins may be the cause, the client comes back. Each login is blamed once.
package struct StrayLogins: Sendable {
    /// When the unanswered login was sent, by the device's clock, in milliseconds since 1970.
    private var startedAt: Int64?
    /// When each login was given up.
    private var givenUp: [Int64]

    /// The number of remembered logins, and how long they are remembered.
    private static let maxRemembered = 16
    private static let milliseconds: Int64 = 300_000

    /// Creates a list that continues an earlier run's, see ``unanswered``.
    package init(unanswered: [Int64] = []) { givenUp = unanswered.suffix(Self.maxRemembered) }

    /// The logins that may still reach the server, for the next run of the app.
    var unanswered: [Int64] { givenUp + (startedAt.map { [$0] } ?? []) }

    /// A login is sent.
    package mutating func began(now: Int64 = WallClock.milliseconds()) { startedAt = now }

    /// Records that the login was answered.
    package mutating func answered() { startedAt = nil }

    /// The connection is gone.
    package mutating func connectionLost(now: Int64 = WallClock.milliseconds()) {
        guard startedAt != nil else { return }
        startedAt = nil
        givenUp = givenUp.suffix(Self.maxRemembered - 1) + [now]
    }

    /// Another login took this client's place.
    ///
    /// - Returns: whether that login may be one that this client gave up.
    package mutating func blame(now: Int64 = WallClock.milliseconds()) -> Bool {
        givenUp.removeAll { abs(now - $0) > Self.milliseconds }
        return givenUp.popLast() != nil
    }
}
