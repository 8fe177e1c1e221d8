// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The shared request rate of all connections of one account or address (``RequestCost``).
///
/// Connections pay in steps. Each step covers many requests, so that one lock is taken for all of these requests. A
/// connection that pays a step when nothing is left waits until the budget has refilled. So a connection that
/// requests little seldom waits, no matter who shares its address.
///
/// State: a ``Locked`` around ``TokenBuckets``.
package final class SharedRates: Sendable {
    package enum Payer: Hashable, Sendable {
        case account(UserID)
        case address(ConnectionCounter.Address)
    }

    static let maxEntries = TokenBuckets<Payer>.maxEntries
    /// The largest amount that a payer may owe, in seconds of its rate.
    static let maxDebt = 60

    private let perAccount: Int
    private let perAddress: Int
    private let buckets = Locked(TokenBuckets<Payer>())

    /// - Parameters:
    ///   - perAccount: units per second of one account.
    ///   - perAddress: units per second of one address.
    package init(perAccount: Int, perAddress: Int) {
        self.perAccount = max(1, perAccount)
        self.perAddress = max(1, perAddress)
    }

    /// The number of remembered budgets.
    var count: Int { buckets.withLock { $0.count } }

    private func rate(of payer: Payer) -> Int {
        switch payer {
        case .account: perAccount
        case .address: perAddress
        }
    }

    /// Charges units to a payer's budget.
    ///
    /// - Parameter now: the present time of a monotonic clock.
    /// - Returns: the time that the connection must wait; zero while the budget has units left.
    package func charge(_ units: Int, to payer: Payer, now: Duration) -> Duration {
        buckets.withLock { buckets in
            buckets.change(payer, now: now, rate: { .init(perSecond: rate(of: $0), burst: rate(of: $0)) }) { bucket in
                let rate = rate(of: payer)
                bucket.take(units, debt: Self.maxDebt * rate)
                return bucket.delay(rate: rate)
            }
        }
    }
}
