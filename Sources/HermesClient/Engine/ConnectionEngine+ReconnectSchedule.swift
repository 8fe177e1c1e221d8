// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension ConnectionEngine {
    /// What the server advises about coming back.
    struct Advice: Hashable, Sendable {
        /// Not before this much time has passed. At most an hour is obeyed.
        var notBefore: Duration
        /// At a random moment of the window that starts then. At most the policy's greatest window is obeyed.
        var window: Duration
        /// Where to connect to instead; nil: the same as before.
        var endpoint: ServerAddress.Endpoint?
    }

    /// When the next try is due: the policy, and how the tries so far went. A value; time is passed in.
    ///
    /// The windows of the first tries follow one another, whether the try in one fails soon or late. So those that a
    /// server lost in one moment make one try each in every window, and when the server is back, no second sees more
    /// of them than the even rate. With windows that began at each client's failure it would see twice as many.
    ///
    /// A try in a window that the server advised which fails early in it, as the server is not back yet, is followed by
    /// one that is drawn evenly from the rest. So all that failed while the server was away come evenly in what was left
    /// of the window when it came back. The less was left, the denser they would come: a try that fails when less
    /// than `leastRest` is left is followed by one in the next window.
    struct ReconnectSchedule: Sendable {
        /// When to come back, as the server advised.
        struct Slot: Hashable, Sendable {
            /// Not even a changed network or the app's user makes it earlier.
            var earliest: NIODeadline
            /// The random moment.
            var moment: NIODeadline
            /// The end of the window that the moment is from.
            var end: NIODeadline
        }

        /// How many tries failed since the connection last was well.
        private(set) var failures = 0
        /// The end of the last try's window.
        private var windowEnd: NIODeadline?
        /// The slot that the present try is in; nil: the server advised none, or the client has been back since.
        private var slot: Slot?
        private let policy: ReconnectPolicy
        private var random: SplitMix64

        /// The longest advice that is obeyed.
        static let longestAdvice = Duration.seconds(3600)
        /// The part of an advised window that has to be left for a second try in it: by its inverse, 1.33, no second
        /// sees more of those who come back than the even rate, and a server may be away for a quarter of the window.
        static let leastRest = 0.75
        /// No second try in less time than this, whatever the window.
        static let shortestRest = TimeAmount.seconds(1)

        init(_ policy: ReconnectPolicy, seed: UInt64) {
            self.policy = policy
            random = SplitMix64(state: seed)
        }

        /// Whether the policy wants no further try.
        var isOver: Bool { policy.delay(afterFailures: failures, random: 0) == nil }

        /// The connection was well, or the world has changed: the next failure is the first.
        mutating func startAnew() {
            failures = 0
            windowEnd = nil
            slot = nil
        }

        /// A try succeeded: it is not yet known whether the connection will be well.
        mutating func arrived() { slot = nil }

        /// A try failed or the connection was lost.
        ///
        /// - Returns: when to try again; nil if there is to be no further try.
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

        /// The same where the server advised a slot: obeyed, but one that advises time and again does not make its
        /// client try more often than by the policy.
        mutating func next(_ slot: Slot, now: NIODeadline) -> NIODeadline? {
            self.slot = nil
            guard let own = next(now: now) else { return nil }
            self.slot = slot
            windowEnd = max(windowEnd ?? slot.end, slot.end)
            return max(now, failures > 1 ? max(own, slot.moment) : slot.moment)
        }

        /// The slot that the advice means for this client.
        mutating func slot(_ advice: Advice, now: NIODeadline) -> Slot {
            let earliest = now + TimeAmount(min(advice.notBefore, Self.longestAdvice))
            let window = min(advice.window, policy.maxAdvisedWindow)
            let moment = earliest + TimeAmount(window * random.nextFraction())
            return Slot(earliest: earliest, moment: moment, end: earliest + TimeAmount(window))
        }

        /// How much of the advised window is left for another try; nil: too little.
        private func restOfSlot(now: NIODeadline) -> TimeAmount? {
            guard let slot, now >= slot.earliest else { return nil }
            let rest = slot.end - now
            let least = Duration(slot.end - slot.earliest) * Self.leastRest
            return rest >= Self.shortestRest && Duration(rest) >= least ? rest : nil
        }
    }
}

/// A small random number generator that is a value, so that a machine with the same seed decides the same.
struct SplitMix64: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A random number, at least 0 and below 1.
    mutating func nextFraction() -> Double { Double.random(in: 0..<1, using: &self) }
}
