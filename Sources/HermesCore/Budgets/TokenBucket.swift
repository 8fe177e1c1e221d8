// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits a rate: each request takes tokens for its cost, and tokens return over time. The cost of a request is known
/// only after the request, so the number of tokens may become negative. Later requests then wait.
package struct TokenBucket: Sendable, Hashable {
    private var tokens: Double
    private var filledAt: Duration

    /// Creates a full bucket.
    package init(burst: Int, now: Duration) {
        tokens = Double(burst)
        filledAt = now
    }

    /// Adds the tokens that have returned by now, and then returns whether a token is available.
    ///
    /// - Parameters:
    ///   - rate: the tokens that return per second.
    ///   - burst: the maximum number of tokens in the bucket.
    ///   - now: the time of a clock that never goes back.
    package mutating func hasToken(rate: Int, burst: Int, now: Duration) -> Bool {
        if now > filledAt {
            tokens = min(Double(burst), tokens + (now - filledAt) / .seconds(1) * Double(rate))
            filledAt = now
        }
        return tokens >= 1
    }

    /// Takes tokens, even if they are not available; called after ``hasToken(rate:burst:now:)``.
    ///
    /// - Parameter debt: the maximum number of tokens that may be missing afterwards, so that no wait is endless.
    package mutating func take(_ count: Int = 1, debt: Int = .max) {
        tokens = max(tokens - Double(count), min(tokens, -Double(debt)))
    }

    /// Returns the time until a token is available, as of the last ``hasToken(rate:burst:now:)``.
    package func delay(rate: Int) -> Duration {
        tokens >= 1 ? .zero : .seconds((1 - tokens) / Double(max(1, rate)))
    }

    /// Whether a token is available, as of the last ``hasToken(rate:burst:now:)``.
    package var hasToken: Bool { tokens >= 1 }

    /// Whether at least this part of the burst is available, as of the last ``hasToken(rate:burst:now:)``.
    package func holds(_ part: Double, ofBurst burst: Int) -> Bool { tokens >= part * Double(burst) }
}
