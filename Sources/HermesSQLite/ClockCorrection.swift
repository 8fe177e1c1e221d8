// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Corrects the times of rows that were stored while the clock was behind (``ClockJump``). Each row is corrected when
/// it is found.
struct ClockCorrection {
    let db: Database
    let jumps: ClockJumps

    /// - Returns: whether the row was corrected. A corrected row may not have expired yet, and must be examined again.
    func correctMessage(_ key: Int64, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        try Self.moveMessage(key, by: delay, in: db)
        return true
    }

    /// Corrects an inbox entry that is not a message, as ``correctMessage(_:storedAt:)`` corrects a message.
    func correctEntry(_ seq: UInt64, of user: UserID, in table: String, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        try Self.moveEntry(seq, of: user, in: table, by: delay, in: db)
        return true
    }

    /// Moves the times of a message by a delay. A negative delay moves them back.
    static func moveMessage(_ key: Int64, by delay: Duration, in db: Database) throws {
        let update = try PreparedStatement(
            db,
            """
            UPDATE message SET committed_at = committed_at + ?1, sent_at = sent_at + ?1, expires_at = expires_at + ?1, \
            due = due + ?1, content_until = iif(content_until > 0, content_until + ?1, content_until) WHERE key = ?2
            """
        )
        update.bind(Timestamp(rawValue: 0).advanced(by: delay), at: 1)
        update.bind(key, at: 2)
        try update.run()
    }

    /// Moves the times of an inbox entry that is not a message, by a delay. A negative delay moves them back.
    static func moveEntry(
        _ seq: UInt64,
        of user: UserID,
        in table: String,
        by delay: Duration,
        in db: Database
    ) throws {
        let update = try PreparedStatement(
            db,
            """
            UPDATE \(table) SET committed_at = committed_at + ?1, expires_at = expires_at + ?1 \
            WHERE user = ?2 AND seq = ?3
            """
        )
        update.bind(Timestamp(rawValue: 0).advanced(by: delay), at: 1)
        update.bind(user, at: 2)
        update.bind(seq, at: 3)
        try update.run()
    }
}
