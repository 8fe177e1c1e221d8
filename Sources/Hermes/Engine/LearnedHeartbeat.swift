// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The heartbeat interval that was learned for a network. Reads no clock: the caller passes the time.
package struct LearnedHeartbeat: Hashable, Sendable {
    /// The interval that is used next.
    package var interval: Duration
    /// Whether the search has ended, for now.
    package var isStable: Bool
    /// The number of answered heartbeats in a row since the interval last changed.
    package var successes: Int
    /// The number of lost connections in a row that the interval may have caused.
    package var failures: Int
    /// The time of the last change of the interval or its stability, in seconds since 1970.
    package var changedAt: Int64

    /// Creates a learned heartbeat, by default at the start of the search.
    package init(
        interval: Duration,
        isStable: Bool = false,
        successes: Int = 0,
        failures: Int = 0,
        changedAt: Int64 = 0
    ) {
        self.interval = interval
        self.isStable = isStable
        self.successes = successes
        self.failures = failures
        self.changedAt = changedAt
    }

    /// Returns a copy whose interval is within the bounds.
    func clamped(to bounds: HeartbeatAdaptation) -> Self {
        var copy = self
        copy.interval = min(max(interval, bounds.shortest), bounds.longest)
        return copy
    }

    /// Notes that a heartbeat was answered after silence in both directions for the whole interval.
    mutating func succeeded(within bounds: HeartbeatAdaptation, date: Int64) {
        failures = 0
        guard !isStable else {
            // A clock that was set back must not delay the search.
            changedAt = min(changedAt, date)
            guard date - changedAt >= HeartbeatAdaptation.quietSeconds, interval < bounds.longest else { return }
            return change(to: interval + HeartbeatAdaptation.nudge, isStable: false, within: bounds, date: date)
        }
        successes += 1
        guard successes >= bounds.successesBeforeStep else { return }
        let isLongest = interval >= bounds.longest
        change(to: interval + bounds.step, isStable: isLongest, within: bounds, date: date)
    }

    /// Notes that the connection was lost while a heartbeat was unanswered.
    mutating func failed(within bounds: HeartbeatAdaptation, date: Int64) {
        successes = 0
        failures += 1
        guard failures >= bounds.failuresBeforeRetreat else { return }
        if isStable {
            // The learned interval is no longer valid.
            change(to: bounds.shortest, isStable: false, within: bounds, date: date)
        } else {
            change(to: interval - bounds.retreat, isStable: true, within: bounds, date: date)
        }
    }

    /// Notes that the connection ended for a reason unrelated to heartbeats.
    mutating func interrupted() { successes = 0 }

    private mutating func change(to interval: Duration, isStable: Bool, within bounds: HeartbeatAdaptation, date: Int64)
    {
        self = LearnedHeartbeat(interval: interval, isStable: isStable, changedAt: date).clamped(to: bounds)
    }
}
