// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// Limits the TLS handshakes of each address. A handshake may cost the server a few milliseconds of an event loop,
/// and costs the client nothing. So the handshake is charged before its first byte. At that time it is unknown
/// whether the client resumes a session, so a resumption costs the same.
///
/// State: a `Mutex` around ``TokenBuckets``, taken once per handshake.
package final class HandshakeBudget: Sendable {
    /// The number of seconds for which an address may save up handshakes.
    static let burstSeconds = 10

    private let rate: TokenBuckets<ConnectionCounter.Address>.Rate
    private let buckets = Mutex(TokenBuckets<ConnectionCounter.Address>())

    /// - Parameter perAddress: the number of handshakes of one address per second.
    package init(perAddress: Int) {
        rate = .init(perSecond: max(1, perAddress), burst: max(1, perAddress) * Self.burstSeconds)
    }

    /// Charges one handshake to an address. Local sockets, and peers whose address is not known, are not limited.
    ///
    /// - Parameter now: the present time of a monotonic clock.
    /// - Returns: false if the address has used up its handshakes. In that case, nothing is charged, so a client that
    ///   waits is admitted later.
    package func take(of address: ConnectionCounter.Address, now: Duration) -> Bool {
        guard address != .local, address != .unknown, address != .hidden else { return true }
        return buckets.withLock { buckets in
            buckets.change(address, now: now, rate: { _ in rate }) { bucket in
                guard bucket.hasToken(rate: rate.perSecond, burst: rate.burst, now: now) else { return false }
                bucket.take()
                return true
            }
        }
    }
}
