// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The pauses in which a connection is not read from: it exceeds its budgets, or others are behind with its
/// publications. Pauses for exceeded budgets form series. Does no I/O. Owner: the connection's event loop.
struct Throttle {
    /// The time without a pause after which the next pause begins a new series.
    private static let respite = TimeAmount.seconds(30)

    /// The beginning of the present series; nil if there is none.
    private var since: NIODeadline?
    /// The beginning of the last pause of a series.
    private var lastAt = NIODeadline.distantPast
    /// The end of the present pause.
    private(set) var until = NIODeadline.uptimeNanoseconds(0)

    /// Whether a series has begun and not ended.
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

    /// Extends the present pause. It does not become shorter.
    mutating func extend(until end: NIODeadline) { until = max(until, end) }
}
