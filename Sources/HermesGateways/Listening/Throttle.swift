// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The pauses in which the server does not read from a connection. A pause begins when the connection exceeds a budget,
/// or when another loop is far behind with the connection's publications. Pauses for exceeded budgets form a series. A
/// series ends when the budget recovers, or after ``respite`` without such a pause. Other pauses belong to no series.
/// This type does no I/O. Owner: the connection's event loop.
struct Throttle {
    /// The time without a pause after which the next pause begins a new series.
    private static let respite = TimeAmount.seconds(30)

    /// The beginning of the present series; nil if there is none.
    private var since: NIODeadline?
    /// The beginning of the newest pause for an exceeded budget.
    private var lastAt = NIODeadline.distantPast
    /// The end of the present pause.
    private(set) var until = NIODeadline.uptimeNanoseconds(0)

    /// Whether a series has begun but has not ended.
    var isInSeries: Bool { since != nil }

    /// Notes that the connection has exceeded a budget.
    ///
    /// - Returns: how long the series has lasted; nil if this pause begins a new series.
    mutating func budgetExceeded(now: NIODeadline) -> TimeAmount? {
        if now - lastAt > Self.respite { since = nil }
        lastAt = now
        guard let since else {
            self.since = now
            return nil
        }
        return now - since
    }

    /// Ends the series, because the connection's budget has recovered.
    mutating func budgetRecovered() { since = nil }

    /// Extends the present pause. The pause never becomes shorter.
    mutating func extend(until end: NIODeadline) { until = max(until, end) }
}
