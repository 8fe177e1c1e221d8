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
    struct ReconnectSchedule: Sendable {
        /// When to come back, as the server advised.
        struct Slot: Hashable, Sendable {
            /// Not even a changed network or the app's user makes it earlier.
            var earliest: NIODeadline
            /// The random moment.
            var moment: NIODeadline
        }

        /// How many tries failed since the connection last was well.
        private(set) var failures = 0
        /// The end of the last try's window.
        private var windowEnd: NIODeadline?
        private let policy: ReconnectPolicy
        private var random: SplitMix64

        /// The longest advice that is obeyed.
        static let longestAdvice = Duration.seconds(3600)

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
        }

        /// A try failed or the connection was lost.
        ///
        /// - Returns: when to try again; nil if there is to be no further try.
        mutating func next(now: NIODeadline) -> NIODeadline? {
            guard let delay = policy.delay(afterFailures: failures, random: random.nextFraction()) else { return nil }
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
            guard let own = next(now: now) else { return nil }
            return max(now, failures > 1 ? max(own, slot.moment) : slot.moment)
        }

        /// The slot that the advice means for this client.
        mutating func slot(_ advice: Advice, now: NIODeadline) -> Slot {
            let earliest = now + TimeAmount(min(advice.notBefore, Self.longestAdvice))
            let window = min(advice.window, policy.maxAdvisedWindow)
            return Slot(earliest: earliest, moment: earliest + TimeAmount(window * random.nextFraction()))
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
