// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The times at which a client sends heartbeats, and the time after which the connection counts as lost.
public struct HeartbeatPolicy: Hashable, Sendable {
    /// The time between two heartbeats. With an adaptation, it is the first interval that is tried, and the longest
    /// interval in the foreground.
    package var interval: Duration
    /// The bounds within which the interval adapts to the network; nil if the interval is fixed.
    package var adaptation: HeartbeatAdaptation?
    /// The time to wait for an answer; nil if the protocol has none. Any byte from the server counts as the answer.
    package var answerTimeout: Duration?
    /// The number of unanswered heartbeats in a row after which the connection counts as lost; at least 1.
    package var tries: Int
    /// Whether any write of the client counts as a heartbeat. The next heartbeat is due one interval after the last
    /// write or the last incoming byte, whichever is earlier. A client that writes but receives nothing therefore
    /// notices the silence.
    package var restartsOnWrite: Bool

    /// Creates a policy with a fixed interval.
    ///
    /// - Parameters:
    ///   - interval: the time between two heartbeats.
    ///   - answerTimeout: how long to wait for an answer; nil if the protocol has none.
    ///   - tries: the number of unanswered heartbeats in a row after which the connection counts as lost. The default
    ///     is three, because a bad network may lose a heartbeat.
    ///   - restartsOnWrite: whether any write counts as a heartbeat for the server.
    public init(
        interval: Duration,
        answerTimeout: Duration? = .seconds(8),
        tries: Int = 3,
        restartsOnWrite: Bool = true
    ) {
        self.init(
            interval: interval,
            adaptation: nil,
            answerTimeout: answerTimeout,
            tries: tries,
            restartsOnWrite: restartsOnWrite
        )
    }

    package init(
        interval: Duration,
        adaptation: HeartbeatAdaptation?,
        answerTimeout: Duration? = .seconds(8),
        tries: Int = 3,
        restartsOnWrite: Bool = true
    ) {
        self.interval = interval
        self.adaptation = adaptation
        self.answerTimeout = answerTimeout
        self.tries = max(1, tries)
        self.restartsOnWrite = restartsOnWrite
    }

    /// The policy for apps that get pushes: a heartbeat every 120 s, which is below most carriers' idle timeouts. The
    /// answer must arrive within 8 s.
    public static let push = HeartbeatPolicy(interval: .seconds(120))
    /// The policy for apps that get pushes, with an interval that adapts to the network, from 25 s to 580 s. The
    /// learned intervals are kept in memory or, with ``DeviceConditions/keepHeartbeats(inFile:)``, in a file.
    public static let adaptive = HeartbeatPolicy(interval: .seconds(120), adaptation: HeartbeatAdaptation())
    /// The policy for Delimited, which is ``push``.
    package static let delimited = push
    /// The policy for IMPB: a heartbeat every 180 s. The answer must arrive within 8 s.
    package static let impb = HeartbeatPolicy(interval: .seconds(180))
    /// The policy for LiveRoom: a heartbeat every 9.5 s, without an answer. No other write replaces a heartbeat.
    ///
    /// The interval is a little under 10 s, because the server removes a client that sends no heartbeat for longer than
    /// 10 s.
    package static let liveRoom = HeartbeatPolicy(
        interval: .milliseconds(9500),
        answerTimeout: nil,
        restartsOnWrite: false
    )
    /// The policy for MQTT: a heartbeat after 60 s without a write or without incoming bytes. The answer must arrive
    /// within 8 s.
    package static let mqtt = HeartbeatPolicy(interval: .seconds(60))
    /// The policy for QSIOP: a heartbeat every 120 s. The answer must arrive within 8 s.
    package static let qsiop = HeartbeatPolicy(interval: .seconds(120))

    /// The longest time between two heartbeats.
    var longestInterval: Duration { max(interval, adaptation?.longest ?? interval) }
}
