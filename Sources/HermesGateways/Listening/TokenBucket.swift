// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits a rate: each request takes as many tokens as it costs, tokens come back with time. What a request costs is
/// known only once it is done, so that there may be less than none left; then the next ones wait.
package struct TokenBucket: Sendable, Hashable {
    private var tokens: Double
    private var filledAt: Duration

    /// A full bucket.
    package init(burst: Int, now: Duration) {
        tokens = Double(burst)
        filledAt = now
    }

    /// Whether there is a token to take.
    ///
    /// - Parameters:
    ///   - rate: tokens per second that come back.
    ///   - burst: the most that the bucket holds.
    ///   - now: of a clock that never goes back.
    package mutating func hasToken(rate: Int, burst: Int, now: Duration) -> Bool {
        if now > filledAt {
            tokens = min(Double(burst), tokens + (now - filledAt) / .seconds(1) * Double(rate))
            filledAt = now
        }
        return tokens >= 1
    }

    /// Takes tokens, whether they are there or not; to be called after ``hasToken(rate:burst:now:)``.
    ///
    /// - Parameter debt: the most that may be missing afterwards, so that nobody waits for ever.
    package mutating func take(_ count: Int = 1, debt: Int = .max) {
        tokens = max(tokens - Double(count), min(tokens, -Double(debt)))
    }

    /// How long it takes until there is a token again; as of the last ``hasToken(rate:burst:now:)``.
    package func delay(rate: Int) -> Duration {
        tokens >= 1 ? .zero : .seconds((1 - tokens) / Double(max(1, rate)))
    }

    /// Whether at least a part of the burst is there; as of the last ``hasToken(rate:burst:now:)``.
    package func holds(_ part: Double, ofBurst burst: Int) -> Bool { tokens >= part * Double(burst) }
}
