// Hermes
// SPDX-License-Identifier: Apache-2.0

/// When a client shows the server that it is alive, and when it takes the server for dead.
public struct HeartbeatPolicy: Hashable, Sendable {
    /// The time between two heartbeats; with an adaptation: the first guess, and the longest in the foreground.
    public var interval: Duration
    /// Whether the interval is adapted to the network, and within which bounds; nil: it is fixed.
    public var adaptation: HeartbeatAdaptation?
    /// How long an answer is awaited; nil where the protocol has none. Any byte from the server counts as the answer.
    public var answerTimeout: Duration?
    /// How many heartbeats in a row may stay unanswered; after the last the connection is given up. At least 1.
    public var tries: Int
    /// Whether whatever the client writes counts as a heartbeat for the server. The interval restarts then if something
    /// came from the server, too: a client that writes and hears nothing must notice that nobody is there.
    public var restartsOnWrite: Bool

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - interval: the time between two heartbeats, or the first guess.
    ///   - adaptation: the bounds of the interval if it is adapted to the network.
    ///   - answerTimeout: how long an answer is awaited; nil where the protocol has none.
    ///   - tries: how many heartbeats in a row may stay unanswered; three, so that one lost in a bad network does not
    ///     cost the connection.
    ///   - restartsOnWrite: whether any write counts as a heartbeat for the server.
    public init(
        interval: Duration,
        adaptation: HeartbeatAdaptation? = nil,
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

    /// Push: every 120 s, under most carriers' time-outs for idle connections; the answer within 8 s.
    public static let push = HeartbeatPolicy(interval: .seconds(120))
    /// Push with an interval that follows the network, from 25 s to 580 s; what is learned is kept in
    /// ``DeviceConditions/heartbeatStore``.
    public static let adaptive = HeartbeatPolicy(interval: .seconds(120), adaptation: HeartbeatAdaptation())
    /// Delimited: as push.
    public static let delimited = push
    /// IMPB: every 180 s; the answer within 8 s.
    public static let impb = HeartbeatPolicy(interval: .seconds(180))
    /// LiveRoom: every 10 s without answer; only heartbeats count as life there, so that no write replaces one.
    ///
    /// A little under 10 s, because the server removes a client that was silent for more than that.
    public static let liveRoom = HeartbeatPolicy(
        interval: .milliseconds(9500),
        answerTimeout: nil,
        restartsOnWrite: false
    )
    /// MQTT: after 60 s in which the client wrote nothing or heard nothing; the answer within 8 s.
    public static let mqtt = HeartbeatPolicy(interval: .seconds(60))
    /// QSIOP: every 120 s; the answer within 8 s.
    public static let qsiop = HeartbeatPolicy(interval: .seconds(120))

    /// The longest time between two heartbeats.
    var longestInterval: Duration { max(interval, adaptation?.longest ?? interval) }
}
