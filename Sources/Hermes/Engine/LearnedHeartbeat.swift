// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bounds within which a client searches for the longest heartbeat interval that a network allows.
///
/// Address translators (NAT) between device and server forget a silent connection after 30 s to some tens of minutes.
/// Data that the server sends later is lost, and neither side is notified. Heartbeats that are too frequent drain the
/// battery. If heartbeats are too rare, pushes are lost.
package struct HeartbeatAdaptation: Hashable, Sendable {
    /// The shortest interval. The default is below 30 s, the time after which the most impatient networks forget a
    /// connection.
    package var shortest: Duration
    /// The longest interval.
    package var longest: Duration
    /// The increase of the interval at each step.
    package var step: Duration
    /// The decrease of the interval after failures.
    package var retreat: Duration
    /// The number of successes in a row before the interval grows; at least 1.
    package var successesBeforeStep: Int
    /// The number of failures in a row before the interval shrinks; at least 1.
    package var failuresBeforeRetreat: Int

    /// Creates bounds.
    ///
    /// - Parameters:
    ///   - shortest: the shortest interval, at least 1 s.
    ///   - longest: the longest interval, at least the shortest; the default is the limit of Mars' smart heartbeat.
    ///   - step: the increase of the interval at each step, at least 1 s.
    ///   - retreat: the decrease of the interval after failures, at least 1 s.
    ///   - successesBeforeStep: the number of successes in a row before the interval grows.
    ///   - failuresBeforeRetreat: the number of failures in a row before the interval shrinks.
    package init(
        shortest: Duration = .seconds(25),
        longest: Duration = .seconds(580),
        step: Duration = Self.step,
        retreat: Duration = Self.retreat,
        successesBeforeStep: Int = Self.successesBeforeStep,
        failuresBeforeRetreat: Int = Self.failuresBeforeRetreat
    ) {
        self.shortest = max(shortest, .seconds(1))
        self.longest = max(longest, self.shortest)
        self.step = max(step, .seconds(1))
        self.retreat = max(retreat, .seconds(1))
        self.successesBeforeStep = max(1, successesBeforeStep)
        self.failuresBeforeRetreat = max(1, failuresBeforeRetreat)
    }

    // The rule of Mars' smart heartbeat (https://github.com/Tencent/mars, stn/config.h and smart_heartbeat.cc).
    /// The interval grows after 5 successes in a row.
    package static let successesBeforeStep = 5
    /// The interval grows by 60 s at each step.
    package static let step = Duration.seconds(60)
    /// The interval shrinks after 2 failures in a row.
    package static let failuresBeforeRetreat = 2
    /// The interval shrinks by 80 s after failures.
    package static let retreat = Duration.seconds(80)
    /// After this time without a failure, a longer interval is tried, because the network may now allow it.
    static let quietSeconds: Int64 = 7 * 86_400
    /// The increase of the interval after ``quietSeconds`` without a failure.
    static let nudge = Duration.seconds(20)
}

/// The heartbeat interval learned for a network. Time is passed in.
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

    /// Notes that the connection died while a heartbeat was unanswered.
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
