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

    /// Takes a token if there is one.
    ///
    /// - Parameters:
    ///   - rate: tokens per second that come back.
    ///   - burst: the most that the bucket holds.
    ///   - now: of a clock that never goes back.
    package mutating func take(rate: Int, burst: Int, now: Duration) -> Bool {
        if now > filledAt {
            tokens = min(Double(burst), tokens + (now - filledAt) / .seconds(1) * Double(rate))
            filledAt = now
        }
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
