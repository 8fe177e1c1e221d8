// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides when to try which endpoint, and keeps the first connection that opens.
///
/// This is Happy Eyeballs (RFC 8305, section 5) for endpoints: the next endpoint is tried when the earlier endpoints
/// fail or are slow. The system or NIO does the same for the addresses of one host name. Does no I/O.
struct ConnectionRace: Sendable {
    enum Action: Hashable, Sendable {
        /// Open a connection to the endpoint with this number. Then report `opened` or `failed`.
        case open(Int)
        /// Call `delayPassed` with this number after the delay.
        case startTimer(Int)
        /// The connection is the winner.
        case keep
        /// Close the connection: another connection was faster.
        case discard
        /// No endpoint answers.
        case giveUp
    }

    private let count: Int
    private var started = 0
    private var failures = 0
    private var isWon = false

    /// Creates a race between endpoints.
    ///
    /// - Parameter count: the number of endpoints; at least 1.
    init(count: Int) { self.count = count }

    mutating func began() -> [Action] { next() }

    mutating func failed() -> [Action] {
        failures += 1
        if isWon { return [] }
        if failures == count { return [.giveUp] }
        // If other attempts are still running, the timer starts the next attempt.
        return failures == started ? next() : []
    }

    /// Handles the end of a delay.
    ///
    /// - Parameter number: the number from `startTimer`.
    mutating func delayPassed(_ number: Int) -> [Action] {
        // If a failure has started the next attempt meanwhile, this timer does nothing.
        isWon || number != started ? [] : next()
    }

    mutating func opened() -> [Action] {
        if isWon { return [.discard] }
        isWon = true
        return [.keep]
    }

    private mutating func next() -> [Action] {
        guard started < count else { return [] }
        started += 1
        return started < count ? [.open(started - 1), .startTimer(started)] : [.open(started - 1)]
    }
}
