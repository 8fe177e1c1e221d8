// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The time by which a read decides which entries have expired; see ``TimeSource/expiryTime()``.
package struct ExpiryTime: Sendable {
    /// The time of the wall clock.
    package let now: Timestamp
    /// Only entries that were stored at this time or later can count as expired; nil if all entries can.
    package let storedSince: Timestamp?

    package init(now: Timestamp, storedSince: Timestamp? = nil) {
        self.now = now
        self.storedSince = storedSince
    }

    /// Whether an entry that expires at `expiry` and was stored at `storedAt` counts as expired.
    package func isOver(_ expiry: Timestamp, storedAt: Timestamp) -> Bool {
        guard expiry <= now else { return false }
        return storedSince.map { storedAt >= $0 } ?? true
    }
}
