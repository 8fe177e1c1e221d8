// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The allowance of each account for unrequested entries in others' inboxes: a number per hour, which may be used at
/// once. Pure; times are of a clock that never goes back.
///
/// A cost may be known only afterwards, so an account can get into debt; it then waits until the debt is paid off.
struct AccountAllowance {
    private struct Bucket {
        var left: Double
        var at: Duration
    }

    /// The number of accounts beyond which those with a full allowance are forgotten.
    private static let remembered = 50_000

    private let perHour: Int
    private var buckets: [UserID: Bucket] = [:]
    private var trimAt = Self.remembered

    /// - Parameter perHour: at least 1.
    init(perHour: Int) { self.perHour = max(1, perHour) }

    /// The number of remembered accounts.
    var count: Int { buckets.count }

    /// Charges an account's allowance if any is left.
    ///
    /// - Returns: nil if it was charged; otherwise the time until some is left, and nothing was charged.
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

    /// Charges the rest of a cost that is known only afterwards.
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
