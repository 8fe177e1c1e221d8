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

    private struct State {
        var buckets: [Int64: Bucket] = [:]
        /// The latest time of a request.
        var now = Duration.zero
        /// The earliest time of the next search for full buckets.
        var trimAt = Duration.zero
    }

    /// Full buckets are removed only if there are at least this many buckets. A key without a bucket counts as a key
    /// with a full bucket.
    private static let remembered = 4_096
    /// The shortest time between two searches for full buckets.
    private static let trimPeriod = Duration.seconds(1)

    private let rate: Double
    private let burst: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - rate: the requests per second of one key.
    ///   - burst: the largest number of requests at once.
    init(rate: Int, burst: Int) {
        self.rate = Double(max(1, rate))
        self.burst = max(1, burst)
    }

    /// The number of keys in memory.
    var count: Int { state.withLock { $0.buckets.count } }

    /// Takes further tokens for a request that was allowed. If there are too few, the number of tokens becomes
    /// negative. The key's next requests are then refused until there is a whole token again.
    ///
    /// - Returns: the decision about the request, with the numbers after the charge; nil if nothing was charged.
    func charge(_ count: Int, to key: Int64) -> Decision? {
        guard count > 0 else { return nil }
        let tokens = state.withLock { state in
            var bucket = state.buckets[key] ?? Bucket(tokens: Double(burst), filledAt: state.now)
            bucket.tokens -= Double(count)
            state.buckets[key] = bucket
            return bucket.tokens
        }
        return decision(isAllowed: true, tokens: tokens)
    }

    /// Takes a token of a key, if there is one.
    ///
    /// - Parameter now: the time of a clock that never goes back.
    func request(of key: Int64, now: Duration) -> Decision {
        let (isAllowed, tokens) = state.withLock { state in
            state.now = max(state.now, now)
            if state.buckets[key] == nil { trim(&state, now: now) }
            var bucket = state.buckets[key] ?? Bucket(tokens: Double(burst), filledAt: now)
            bucket.tokens = level(of: bucket, now: now)
            bucket.filledAt = now
            let isAllowed = bucket.tokens >= 1
            if isAllowed { bucket.tokens -= 1 }
            state.buckets[key] = bucket
            return (isAllowed, bucket.tokens)
        }
        return decision(isAllowed: isAllowed, tokens: tokens)
    }

    private func level(of bucket: Bucket, now: Duration) -> Double {
        min(Double(burst), bucket.tokens + max(0, (now - bucket.filledAt) / .seconds(1)) * rate)
    }

    /// Removes the full buckets if there are very many buckets.
    private func trim(_ state: inout State, now: Duration) {
        guard state.buckets.count >= Self.remembered, now >= state.trimAt else { return }
        state.trimAt = now + Self.trimPeriod
        state.buckets = state.buckets.filter { level(of: $0.value, now: now) < Double(burst) }
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
