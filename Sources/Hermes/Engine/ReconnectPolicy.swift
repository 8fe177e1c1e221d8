// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The waiting times before a client reconnects.
///
/// A server that restarts loses all its clients at once. Random delays keep them from returning at the same moment.
public struct ReconnectPolicy: Hashable, Sendable {
    /// The windows of the first tries. Each try comes at a random moment of its window, and the windows follow one
    /// another.
    package var windows: [Duration]
    /// The delays of later tries; the last delay repeats. If there are no delays, there are no further tries.
    package var delays: [Duration]
    /// The largest deviation of a delay, up or down, as a fraction of it.
    package var jitter: Double
    /// The longest window that the client accepts from the server's advice.
    package var maxAdvisedWindow: Duration

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - windows: the windows of the first tries.
    ///   - delays: the delays of later tries; the last delay repeats. Empty: no further tries.
    ///   - jitter: the largest deviation of a delay, as a fraction: 0 to 1.
    ///   - maxAdvisedWindow: the longest window that the client accepts from the server's advice.
    public init(
        windows: [Duration],
        delays: [Duration],
        jitter: Double = 0.2,
        maxAdvisedWindow: Duration = .seconds(3600)
    ) {
        self.maxAdvisedWindow = maxAdvisedWindow
        self.windows = windows
        self.delays = delays
        self.jitter = min(max(jitter, 0), 1)
    }

    /// The policy for apps, of which a server has many as clients: six tries, each at a random moment of its own window
    /// of 15 s, then tries after 1, 2, 5 and 10 minutes, and then every 10 minutes.
    ///
    /// If the network changes or the app comes to the foreground, the client tries at once, and the policy starts
    /// again.
    public static let standard = ReconnectPolicy(
        windows: Array(repeating: .seconds(15), count: 6),
        delays: [.seconds(60), .seconds(120), .seconds(300), .seconds(600)]
    )
    /// The policy for a person at a terminal: the first tries come within 1 s each, later tries every few seconds.
    public static let interactive = ReconnectPolicy(
        windows: [.seconds(1), .seconds(1), .seconds(1), .seconds(2), .seconds(2), .seconds(3)],
        delays: [.seconds(3), .seconds(5), .seconds(10)],
        maxAdvisedWindow: .seconds(2)
    )
    /// The policy that never reconnects: the first failure is final.
    package static let never = ReconnectPolicy(windows: [], delays: [])

    /// Returns the wait before the next try, counted from the start of its window if it has one.
    ///
    /// - Parameters:
    ///   - failures: the number of failed tries since the connection last worked.
    ///   - random: a random number, at least 0 and below 1.
    /// - Returns: the wait; nil if there is no further try.
    func delay(afterFailures failures: Int, random: Double) -> Duration? {
        if failures < windows.count { return windows[max(0, failures)] * random }
        guard let last = delays.last else { return nil }
        let index = failures - windows.count
        let delay = index < delays.count ? delays[index] : last
        return delay * (1 + jitter * (2 * random - 1))
    }
}

extension ConnectionEngine {
    /// The server's advice for reconnecting.
    package struct Advice: Hashable, Sendable {
        /// The shortest wait, of which the client obeys at most an hour.
        var notBefore: Duration
        /// The window that follows the wait. The client reconnects at a random moment of the window, which it limits to
        /// the policy's longest window.
        var window: Duration
        /// The endpoint to connect to; nil: the same as before.
        var endpoint: ServerAddress.Endpoint?
    }

    /// Decides when the next try is due, from the policy and the tries so far. Time is passed in.
    ///
    /// The windows of the first tries follow one another, whether a try fails soon or late. So all clients that lost
    /// their server at the same moment make one try in every window, and the server sees them return at an even rate.
    /// Windows that began at each client's failure would double the peak.
    ///
    /// If a try fails early in an advised window because the server is not back yet, a second try is drawn evenly from
    /// the rest of the window. So all clients that failed arrive evenly in that rest. The shorter the rest, the higher
    /// the rate. So if less than `leastRest` is left when a try fails, the next try comes in the next window.
    struct ReconnectSchedule: Sendable {
        /// The moment for reconnecting that follows from the server's advice.
        struct Slot: Hashable, Sendable {
            /// The earliest moment. Neither a changed network nor an app that comes to the foreground makes it earlier.
            var earliest: NIODeadline
            /// The random moment at which the client tries.
            var moment: NIODeadline
            /// The end of the window that the moment was drawn from.
            var end: NIODeadline
        }

        /// The number of failed tries since the connection last worked.
        private(set) var failures = 0
        /// The end of the last try's window.
        private var windowEnd: NIODeadline?
        /// The slot of the present try; nil if the server advised none, or if a login has succeeded since.
        private var slot: Slot?
        private let policy: ReconnectPolicy
        private var random: SplitMix64

        /// The longest advised wait that the client obeys.
        static let longestAdvice = Duration.seconds(3600)
        /// A second try comes in the same advised window only if at least this part of the window is left. The inverse
        /// of this part, 1.33, bounds the peak rate of reconnects, as a multiple of the even rate. So the server may be
        /// away for the first quarter of the window.
        static let leastRest = 0.75
        /// The least time that must be left for a second try, whatever the window.
        static let shortestRest = TimeAmount.seconds(1)

        init(_ policy: ReconnectPolicy, seed: UInt64) {
            self.policy = policy
            random = SplitMix64(state: seed)
        }

        /// Whether the policy allows no further try.
        var isOver: Bool { policy.delay(afterFailures: failures, random: 0) == nil }

        /// Resets the count of failures, because the connection worked or the conditions changed.
        mutating func startAnew() {
            failures = 0
            windowEnd = nil
            slot = nil
        }

        /// Notes that a try succeeded. The count of failures stays, because it is not known yet whether the connection
        /// will keep working.
        mutating func arrived() { slot = nil }

        /// Plans the next try after a try failed or the connection was lost.
        ///
        /// - Returns: the time of the next try; nil if there is none.
        mutating func next(now: NIODeadline) -> NIODeadline? {
            let fraction = random.nextFraction()
            guard let delay = policy.delay(afterFailures: failures, random: fraction) else { return nil }
            if let rest = restOfSlot(now: now) {
                failures += 1
                return now + TimeAmount(Duration(rest) * fraction)
            }
            var begin = now
            if failures < policy.windows.count {
                begin = max(now, windowEnd ?? now)
                windowEnd = begin + TimeAmount(policy.windows[failures])
            }
            failures += 1
            return begin + TimeAmount(delay)
        }

        /// Plans the next try after a try failed or the connection was lost, and the server advised a slot. Repeated
        /// advice does not make the client try more often than its policy allows.
        mutating func next(_ slot: Slot, now: NIODeadline) -> NIODeadline? {
            self.slot = nil
            guard let own = next(now: now) else { return nil }
            self.slot = slot
            windowEnd = max(windowEnd ?? slot.end, slot.end)
            return max(now, failures > 1 ? max(own, slot.moment) : slot.moment)
        }

        /// Draws this client's slot from the advice.
        mutating func slot(_ advice: Advice, now: NIODeadline) -> Slot {
            let earliest = now + TimeAmount(min(advice.notBefore, Self.longestAdvice))
            let window = min(advice.window, policy.maxAdvisedWindow)
            let moment = earliest + TimeAmount(window * random.nextFraction())
            return Slot(earliest: earliest, moment: moment, end: earliest + TimeAmount(window))
        }

        /// Returns the rest of the advised window; nil if there is no window, or its rest is too short for another try.
        private func restOfSlot(now: NIODeadline) -> TimeAmount? {
            guard let slot, now >= slot.earliest else { return nil }
            let rest = slot.end - now
            let least = Duration(slot.end - slot.earliest) * Self.leastRest
            return rest >= Self.shortestRest && Duration(rest) >= least ? rest : nil
        }
    }
}
