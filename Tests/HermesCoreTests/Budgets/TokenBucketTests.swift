// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

struct TokenBucketTests {
    func take(from bucket: inout TokenBucket, rate: Int, burst: Int, now: Duration) -> Bool {
        guard bucket.hasToken(rate: rate, burst: burst, now: now) else { return false }
        bucket.take()
        return true
    }

    @Test func `allows the burst then the rate`() {
        var bucket = TokenBucket(burst: 3, now: .seconds(10))
        for _ in 1...3 {
            let isTaken = take(from: &bucket, rate: 2, burst: 3, now: .seconds(10))
            #expect(isTaken)
        }
        let isEmpty = !take(from: &bucket, rate: 2, burst: 3, now: .seconds(10))
        #expect(isEmpty)
        let isStillEmpty = !take(from: &bucket, rate: 2, burst: 3, now: .milliseconds(10_400))
        #expect(isStillEmpty)
        let isBack = take(from: &bucket, rate: 2, burst: 3, now: .milliseconds(10_500))
        #expect(isBack)
    }

    /// Returns a delay in whole milliseconds, because tokens are fractions.
    private func rounded(_ delay: Duration) -> Int { Int((delay / .milliseconds(1)).rounded()) }

    @Test func `what is owed is paid before anything else`() {
        var bucket = TokenBucket(burst: 10, now: .zero)
        bucket.take(30)
        let isOwing = !bucket.hasToken(rate: 10, burst: 10, now: .zero)
        #expect(isOwing && rounded(bucket.delay(rate: 10)) == 2_100)
        let isPaid = bucket.hasToken(rate: 10, burst: 10, now: .milliseconds(2_100))
        #expect(isPaid && bucket.delay(rate: 10) == .zero)
        bucket.take(1_000, debt: 50)
        _ = bucket.hasToken(rate: 10, burst: 10, now: .milliseconds(2_100))
        #expect(rounded(bucket.delay(rate: 10)) == 5_100)
    }

    @Test func `never holds more than the burst`() {
        var bucket = TokenBucket(burst: 2, now: .zero)
        var taken = 0
        while take(from: &bucket, rate: 1_000, burst: 2, now: .seconds(3_600)) { taken += 1 }
        #expect(taken == 2)
    }

    @Test func `a clock that goes back gives nothing`() {
        var bucket = TokenBucket(burst: 1, now: .seconds(5))
        let first = take(from: &bucket, rate: 1, burst: 1, now: .seconds(5))
        let second = take(from: &bucket, rate: 1, burst: 1, now: .seconds(1))
        #expect(first)
        #expect(!second)
    }
}
