// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bounds within which a client searches for the longest heartbeat interval that a network allows.
///
/// Address translators (NAT) between the device and the server forget a silent connection after a time between 30 s
/// and some tens of minutes. Data that the server sends later is lost, and neither side is notified. Heartbeats that
/// are too frequent drain the battery. If heartbeats are too rare, pushes are lost.
package struct HeartbeatAdaptation: Hashable, Sendable {
    /// The shortest interval. The default is below 30 s, because some networks forget a connection after 30 s of
    /// silence.
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
