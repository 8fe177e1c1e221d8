// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Logins that were given up before their answers came: they may be on their way still, reach the server after a later one
/// of the same client, and take its place. Does no IO; a value in a link.
///
/// A client that is replaced stops, so that two devices with one id do not throw each other out for ever; but if it may
/// have been such a login of its own, it comes back. Each login is blamed once.
struct StrayLogins: Sendable {
    /// When the one was sent whose answer is awaited, by the device's clock in milliseconds since 1970.
    private var startedAt: Int64?
    /// When each was given up.
    private var givenUp: [Int64]

    /// So many are remembered, for so long.
    private static let maxRemembered = 16
    private static let milliseconds: Int64 = 300_000

    /// Creates a list with what an earlier run of the app left, see ``unanswered``.
    init(unanswered: [Int64] = []) { givenUp = unanswered.suffix(Self.maxRemembered) }

    /// Those that may be on their way: the next run of the app has to know them.
    var unanswered: [Int64] { givenUp + (startedAt.map { [$0] } ?? []) }

    /// A login is sent.
    mutating func began(now: Int64 = WallClock.milliseconds()) { startedAt = now }

    /// Its answer came.
    mutating func answered() { startedAt = nil }

    /// The connection is gone.
    mutating func connectionLost(now: Int64 = WallClock.milliseconds()) {
        guard startedAt != nil else { return }
        startedAt = nil
        givenUp = givenUp.suffix(Self.maxRemembered - 1) + [now]
    }

    /// Another login took this client's place.
    ///
    /// - Returns: whether it may have been one of its own.
    mutating func blame(now: Int64 = WallClock.milliseconds()) -> Bool {
        givenUp.removeAll { abs(now - $0) > Self.milliseconds }
        return givenUp.popLast() != nil
    }
}
