// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How the column `expires_at` of queued publications is stored and read.
///
/// A publication that was sent does not expire any more, but keeps its time, which its client is told again and which
/// counts again if it moves to another session. When the purge meets such a row, it stores the complement of the time,
/// which is below zero. So the row leaves the part of the index that the purge reads, and is met only once. No other
/// time is below zero, because no server's clock is before 1970.
enum QueueExpiry {
    /// The time of a column, whichever of the two forms is stored; NULL stays NULL.
    static func time(_ column: String) -> String { "max(\(column), ~\(column))" }

    /// The condition for rows that have expired by the parameter and that the purge has not met yet.
    static let isDue = "expires_at IS NOT NULL AND expires_at >= 0 AND expires_at <= ?"

    /// Takes a row that was sent out of ``isDue`` for good.
    static func settleSQL(_ table: String) -> String {
        "UPDATE \(table) SET expires_at = ~expires_at WHERE session = ? AND seq = ?"
    }
}
