// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The allowance of each account for actions that burden other users or the server. The allowance is an amount per
/// period, which may be used all at once. Does no I/O; the times come from a clock that never goes back.
///
/// An action needs room for its cost. A cost that is larger than the whole amount needs a full allowance, and leaves a
/// debt. A part of a cost may be known only after the work is done, so this part can leave a debt, too. An account with
/// a debt waits until the debt is paid and there is room for the next cost.
struct AccountAllowance {
    private struct Bucket {
        var left: Double
        var at: Duration
    }

    /// The maximum number of accounts that are remembered. 100,000 accounts need about 5 MiB.
    static let maxRemembered = 100_000
    /// The maximum number of accounts that ``trim(_:)`` leaves.
    private static let remembered = 50_000
    /// An action is allowed if the allowance lacks at most this amount, so that rounding errors delay nobody. The
    /// lacking amount becomes a debt, so no account gets more in the long run.
    private static let roundingError = 1e-6
    /// The same limit for large amounts, as a fraction of the amount.
    private static let relativeError = 1e-12

    private let amount: Double
    private let period: Duration
    private var buckets: [UserID: Bucket] = [:]
    private var trimAt = Self.remembered

    /// - Parameter perHour: the amount per hour; at least 1.
    init(perHour: Int) { self.init(perHour, each: .seconds(3_600)) }

    /// - Parameters:
    ///   - amount: the amount per period; at least 1.
    ///   - period: the time in which an empty allowance becomes full again.
    init(_ amount: Int, each period: Duration) {
        self.amount = Double(max(1, amount))
        self.period = period
    }

    /// The allowance for changes of an account's own data, such as its profile. Such changes are limited because each
    /// of them is a transaction of its own.
    static var changes: Self { Self(60, each: .seconds(60)) }

    /// Charges one change.
    ///
    /// - Throws: `.rateLimited`.
    mutating func takeChange(of user: UserID, now: Duration) throws(HermesError) {
        guard let wait = take(1, of: user, now: now) else { return }
        throw HermesError(
            .rateLimited,
            "you have made too many changes this minute; try again shortly",
            retryAfter: wait
        )
    }

    /// The number of remembered accounts.
    var count: Int { buckets.count }

    /// Charges an account's allowance, if the allowance has room for the cost.
    ///
    /// - Returns: nil if the allowance was charged. Otherwise nothing was charged, and the result is the time until the
    ///   cost can be charged.
    mutating func take(_ cost: Int, of user: UserID, now: Duration) -> Duration? {
        var bucket = refilled(user, now)
        let missing = min(Double(cost), amount) - bucket.left
        guard missing <= max(Self.roundingError, amount * Self.relativeError) else {
            return max(.seconds(1), period * (missing / amount))
        }
        bucket.left -= Double(cost)
        remember(bucket, of: user, now)
        return nil
    }

    /// Charges the rest of a cost that is known only after the work is done.
    mutating func charge(_ cost: Int, to user: UserID, now: Duration) {
        guard cost > 0 else { return }
        var bucket = refilled(user, now)
        bucket.left -= Double(cost)
        remember(bucket, of: user, now)
    }

    /// Gives back the charge for an action that did not happen.
    mutating func giveBack(_ cost: Int, to user: UserID) {
        guard cost > 0, let index = buckets.index(forKey: user) else { return }
        buckets.values[index].left = min(amount, buckets.values[index].left + Double(cost))
    }

    private mutating func remember(_ bucket: Bucket, of user: UserID, _ now: Duration) {
        buckets[user] = bucket
        if buckets.count > trimAt { trim(now) }
    }

    private func refilled(_ user: UserID, _ now: Duration) -> Bucket {
        guard let bucket = buckets[user] else { return Bucket(left: amount, at: now) }
        return refilled(bucket, now)
    }

    private func refilled(_ bucket: Bucket, _ now: Duration) -> Bucket {
        let elapsed = max(.zero, now - bucket.at) / period
        return Bucket(left: min(amount, bucket.left + elapsed * amount), at: max(bucket.at, now))
    }

    /// Forgets the accounts with a full allowance and, if that is not enough, the accounts that have used the least. So
    /// the table stays bounded.
    private mutating func trim(_ now: Duration) {
        var classes = [Int](repeating: 0, count: Self.classes + 1)
        for bucket in buckets.values { classes[useClass(bucket, now)] += 1 }
        var kept = buckets.count - classes[0]
        var last = 0
        while kept > Self.remembered {
            last += 1
            kept -= classes[last]
        }
        // The accounts in the last class have used about the same amount, so any of them may be forgotten.
        var spared = last > 0 ? Self.remembered - kept : 0
        buckets = buckets.filter { _, bucket in
            let use = useClass(bucket, now)
            if use > last { return true }
            guard use == last, spared > 0 else { return false }
            spared -= 1
            return true
        }
        trimAt = min(Self.maxRemembered, max(Self.remembered, 2 * buckets.count))
    }

    private static let classes = 256

    /// Returns the class of a bucket by its use: 0 if nothing is used, otherwise a number that grows with the use.
    private func useClass(_ bucket: Bucket, _ now: Duration) -> Int {
        let used = 1 - refilled(bucket, now).left / amount
        guard used > 0 else { return 0 }
        return min(Self.classes, 1 + Int(min(used, 1) * Double(Self.classes - 1)))
    }
}

extension HermesError {
    /// Whether the request failed for a reason that does not lie in the request itself. If so, the charge for the
    /// request is given back.
    var isFailureOfServer: Bool {
        switch code {
        case .overloaded, .storageUnavailable, .shuttingDown, .internalError: true
        default: false
        }
    }
}
