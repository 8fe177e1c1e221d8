// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rate at which a payer's tokens return, and the maximum number of its tokens.
package struct TokenRate: Sendable {
    package let perSecond: Int
    package let burst: Int

    package init(perSecond: Int, burst: Int) {
        self.perSecond = perSecond
        self.burst = burst
    }

    /// Divides the rate into `parts` equal parts, and returns one of them.
    package func part(_ parts: Int) -> TokenRate {
        TokenRate(perSecond: perSecond / parts, burst: max(1, burst / parts))
    }
}

/// The token buckets of many payers. Does no I/O.
///
/// The number of buckets is bounded. If there is no room for a new bucket, full buckets are forgotten first, then
/// buckets that are at least half full, and then all buckets.
package struct TokenBuckets<Payer: Hashable & Sendable>: Sendable {
    package typealias Rate = TokenRate

    package static var maxEntries: Int { 65_536 }

    private var buckets: [Payer: TokenBucket] = [:]

    package init() {}

    package var count: Int { buckets.count }

    /// Brings a payer's bucket up to date, and lets `body` change it.
    ///
    /// - Parameters:
    ///   - now: the time of a clock that never goes back.
    ///   - rate: returns the rate of a payer.
    ///   - body: gets the updated bucket.
    package mutating func change<Result>(
        _ payer: Payer,
        now: Duration,
        rate: (Payer) -> Rate,
        _ body: (inout TokenBucket) -> Result
    ) -> Result {
        let own = rate(payer)
        var bucket: TokenBucket
        if let known = buckets[payer] {
            bucket = known
        } else {
            makeRoom(now: now, rate: rate)
            bucket = TokenBucket(burst: own.burst, now: now)
        }
        _ = bucket.hasToken(rate: own.perSecond, burst: own.burst, now: now)
        defer { buckets[payer] = bucket }
        return body(&bucket)
    }

    private mutating func makeRoom(now: Duration, rate: (Payer) -> Rate) {
        for part in [0.99, 0.5, -.infinity] where buckets.count >= Self.maxEntries {
            buckets = buckets.filter { payer, bucket in
                var bucket = bucket
                let rate = rate(payer)
                _ = bucket.hasToken(rate: rate.perSecond, burst: rate.burst, now: now)
                return !bucket.holds(part, ofBurst: rate.burst)
            }
        }
    }
}
