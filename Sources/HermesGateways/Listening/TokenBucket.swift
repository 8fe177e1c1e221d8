// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits a rate: each request takes a token, tokens come back with time.
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

    /// Takes a token; to be called after ``hasToken(rate:burst:now:)``.
    package mutating func take() { tokens -= 1 }
}
