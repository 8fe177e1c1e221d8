// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits the request rate of each key with a token bucket.
///
/// State: a `Mutex` around the buckets.
final class APIRateLimit: Sendable {
    /// The decision about a request.
    struct Decision: Sendable, Hashable {
        let isAllowed: Bool
        /// The largest number of requests at once.
        let limit: Int
        /// The number of requests allowed now.
        let remaining: Int
        /// The time until ``limit`` requests are allowed again.
        let secondsToReset: Int
        /// The time until one request is allowed again; at least one second.
        let secondsToRetry: Int
    }

    private struct Bucket {
        var tokens: Double
        var filledAt: Duration
    }

    private let rate: Double
    private let burst: Int
    private let buckets = Mutex<[Int64: Bucket]>([:])

    /// - Parameters:
    ///   - rate: the requests per second of one key.
    ///   - burst: the largest number of requests at once.
    init(rate: Int, burst: Int) {
        self.rate = Double(max(1, rate))
        self.burst = max(1, burst)
    }

    /// Takes further tokens for a request that was allowed. If there are too few, the number of tokens becomes
    /// negative. The key's next requests are then refused until there is a whole token again.
    ///
    /// - Returns: the decision about the request, with the numbers after the charge; nil: nothing was charged.
    func charge(_ count: Int, to key: Int64) -> Decision? {
        guard count > 0 else { return nil }
        let tokens = buckets.withLock { buckets in
            buckets[key]?.tokens -= Double(count)
            return buckets[key]?.tokens
        }
        return tokens.map { decision(isAllowed: true, tokens: $0) }
    }

    /// Takes a token of a key, if there is one.
    ///
    /// - Parameter now: the time of a clock that never goes back.
    func request(of key: Int64, now: Duration) -> Decision {
        let (isAllowed, tokens) = buckets.withLock { buckets in
            var bucket = buckets[key] ?? Bucket(tokens: Double(burst), filledAt: now)
            bucket.tokens = min(Double(burst), bucket.tokens + max(0, (now - bucket.filledAt) / .seconds(1)) * rate)
            bucket.filledAt = now
            let isAllowed = bucket.tokens >= 1
            if isAllowed { bucket.tokens -= 1 }
            buckets[key] = bucket
            return (isAllowed, bucket.tokens)
        }
        return decision(isAllowed: isAllowed, tokens: tokens)
    }

    private func decision(isAllowed: Bool, tokens: Double) -> Decision {
        Decision(
            isAllowed: isAllowed,
            limit: burst,
            remaining: max(0, Int(tokens)),
            secondsToReset: Int(((Double(burst) - tokens) / rate).rounded(.up)),
            secondsToRetry: max(1, Int(((1 - tokens) / rate).rounded(.up)))
        )
    }
}
