// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Within which bounds a client looks for the longest heartbeat interval that a network stands.
///
/// Between the device and the server are translators of addresses (NAT) that forget a connection over which nothing goes
/// for a while: for 30 s to some tens of minutes. What comes from the server then is lost without a word. A beat more
/// often than needed costs the battery, one less often costs pushes.
public struct HeartbeatAdaptation: Hashable, Sendable {
    /// The shortest interval; shorter than the most impatient networks' 30 s.
    public var shortest: Duration
    /// The longest interval.
    public var longest: Duration
    /// How much longer an interval is tried.
    public var step: Duration
    /// How much shorter the interval is after failures.
    public var retreat: Duration
    /// Successes in a row before a longer interval is tried; at least 1.
    public var successesBeforeStep: Int
    /// Failures in a row before the interval is given up; at least 1.
    public var failuresBeforeRetreat: Int

    /// Creates bounds.
    ///
    /// - Parameters:
    ///   - shortest: the shortest interval, at least 1 s.
    ///   - longest: the longest interval, at least the shortest; 580 s is what the known rule goes up to.
    ///   - step: how much longer an interval is tried, at least 1 s.
    ///   - retreat: how much shorter the interval is after failures, at least 1 s.
    ///   - successesBeforeStep: successes in a row before a longer interval is tried.
    ///   - failuresBeforeRetreat: failures in a row before the interval is given up.
    public init(
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
    /// 5 successes in a row before a longer interval is tried.
    public static let successesBeforeStep = 5
    /// 60 s longer.
    public static let step = Duration.seconds(60)
    /// 2 failures in a row before the interval is given up.
    public static let failuresBeforeRetreat = 2
    /// 80 s shorter then.
    public static let retreat = Duration.seconds(80)
    /// After so much time without a failure the network may have become more patient.
    static let quietSeconds: Int64 = 7 * 86_400
    /// How much longer an interval is tried then.
    static let nudge = Duration.seconds(20)
}

/// What is known of the heartbeat interval that a network stands. A value; time is passed in.
public struct LearnedHeartbeat: Hashable, Sendable {
    /// The interval that is used next.
    public var interval: Duration
    /// Whether the search is over, for now.
    public var isStable: Bool
    /// Answered heartbeats in a row since the interval last changed.
    public var successes: Int
    /// Connections in a row that died of the interval.
    public var failures: Int
    /// When the interval or its stability last changed, in seconds since 1970.
    public var changedAt: Int64

    /// Creates what is known, by default nothing.
    public init(interval: Duration, isStable: Bool = false, successes: Int = 0, failures: Int = 0, changedAt: Int64 = 0)
    {
        self.interval = interval
        self.isStable = isStable
        self.successes = successes
        self.failures = failures
        self.changedAt = changedAt
    }

    /// The same with an interval within the bounds.
    func clamped(to bounds: HeartbeatAdaptation) -> Self {
        var copy = self
        copy.interval = min(max(interval, bounds.shortest), bounds.longest)
        return copy
    }

    /// A heartbeat was answered after nothing had gone either way for the whole interval.
    mutating func succeeded(within bounds: HeartbeatAdaptation, date: Int64) {
        failures = 0
        guard !isStable else {
            // A clock that was put back must not hold the search up.
            changedAt = min(changedAt, date)
            guard date - changedAt >= HeartbeatAdaptation.quietSeconds, interval < bounds.longest else { return }
            return change(to: interval + HeartbeatAdaptation.nudge, isStable: false, within: bounds, date: date)
        }
        successes += 1
        guard successes >= bounds.successesBeforeStep else { return }
        let isLongest = interval >= bounds.longest
        change(to: interval + bounds.step, isStable: isLongest, within: bounds, date: date)
    }

    /// The connection died while a heartbeat was unanswered.
    mutating func failed(within bounds: HeartbeatAdaptation, date: Int64) {
        successes = 0
        failures += 1
        guard failures >= bounds.failuresBeforeRetreat else { return }
        if isStable {
            // What was learned is no longer true.
            change(to: bounds.shortest, isStable: false, within: bounds, date: date)
        } else {
            change(to: interval - bounds.retreat, isStable: true, within: bounds, date: date)
        }
    }

    /// The connection ended for a reason that has nothing to do with heartbeats.
    mutating func interrupted() { successes = 0 }

    private mutating func change(to interval: Duration, isStable: Bool, within bounds: HeartbeatAdaptation, date: Int64)
    {
        self = LearnedHeartbeat(interval: interval, isStable: isStable, changedAt: date).clamped(to: bounds)
    }
}
