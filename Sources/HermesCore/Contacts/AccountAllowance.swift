// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How many entries each account may still put into the inboxes of others who did not ask for them: so many an hour, as
/// many as a burst. Pure; times are of a clock that never goes back.
///
/// What something costs may be known only once it is done, so an account can come into debt; then it waits until that is
/// paid off.
struct AccountAllowance {
    private struct Bucket {
        var left: Double
        var at: Duration
    }

    /// Beyond so many accounts those that have everything again are forgotten.
    private static let remembered = 50_000

    private let perHour: Int
    private var buckets: [UserID: Bucket] = [:]
    private var trimAt = Self.remembered

    /// - Parameter perHour: at least 1.
    init(perHour: Int) { self.perHour = max(1, perHour) }

    /// How many accounts are remembered.
    var count: Int { buckets.count }

    /// Takes from an account's allowance if anything is left of it.
    ///
    /// - Returns: nil if it was taken; else how long until something is left, and nothing was taken.
    mutating func take(_ cost: Int, of user: UserID, now: Duration) -> Duration? {
        var bucket = refilled(user, now)
        guard bucket.left > 0 else {
            return max(.seconds(1), .seconds((1 - bucket.left) * 3_600 / Double(perHour)))
        }
        bucket.left -= Double(cost)
        buckets[user] = bucket
        if buckets.count > trimAt { trim(now) }
        return nil
    }

    /// Takes what something that was allowed cost beyond what was taken for it.
    mutating func charge(_ cost: Int, to user: UserID, now: Duration) {
        var bucket = refilled(user, now)
        bucket.left -= Double(max(0, cost))
        buckets[user] = bucket
    }

    private func refilled(_ user: UserID, _ now: Duration) -> Bucket {
        guard let bucket = buckets[user] else { return Bucket(left: Double(perHour), at: now) }
        let elapsed = max(.zero, now - bucket.at) / .seconds(3_600)
        return Bucket(left: min(Double(perHour), bucket.left + elapsed * Double(perHour)), at: max(bucket.at, now))
    }

    private mutating func trim(_ now: Duration) {
        for user in Array(buckets.keys) where refilled(user, now).left >= Double(perHour) { buckets[user] = nil }
        trimAt = max(Self.remembered, 2 * buckets.count)
    }
}
