// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The stored form of the column `expires_at` of queued publications.
///
/// After a publication was sent, it does not expire. Its row keeps the expiry time, for two reasons: the server sends
/// the time to the client again when it repeats the publication, and the time counts again if the publication moves to
/// another session. When the purge finds the row of a sent publication, it stores the bitwise complement of the time,
/// which is below zero. So the row leaves the part of the index that the purge reads, and the purge finds the row only
/// once. No other time is below zero, because no server's clock is before 1970.
enum QueueExpiry {
    /// Returns the SQL for the time in a column, whichever of the two forms is stored. NULL stays NULL.
    static func time(_ column: String) -> String { "max(\(column), ~\(column))" }

    /// The SQL condition for rows that have expired at the time in the parameter, and that the purge has not found yet.
    static let isDue = "expires_at IS NOT NULL AND expires_at >= 0 AND expires_at <= ?"

    /// Returns the SQL that stores the complement for a row, so that the row no longer fulfills ``isDue``.
    static func settleSQL(_ table: String) -> String {
        "UPDATE \(table) SET expires_at = ~expires_at WHERE session = ? AND seq = ?"
    }
}
