// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// Which epoch the store's seqs are of.
///
/// Seqs that clients have seen are given a second time if commits were lost. That a client notices by the epoch, which is
/// therefore drawn anew wherever commits may have been lost: after a power cut, and in a copy.
enum StoreMark {
    /// So far a kept session's places jump, so that no packet identifier that its client may still hold in flight is given
    /// to another message: half of the identifiers (`OutboundWindow.maxSpan`).
    static let sessionJump: Int64 = 32_511

    /// Draws a new epoch where commits may have been lost.
    ///
    /// - Parameters:
    ///   - mayHaveLost: by how the last run ended.
    ///   - waits: each commit waited for the disk.
    /// - Returns: the epoch, and whether it is a new one.
    static func open(_ db: Database, mayHaveLost: Bool, waits: Bool) throws -> (epoch: UInt64, isNew: Bool) {
        guard let row = try Row.fetchOne(db, sql: "SELECT epoch, is_copy FROM store WHERE id = 1") else {
            throw StoreFailure.damagedRow
        }
        let isCopy: Bool = row["is_copy"]
        guard isCopy || mayHaveLost else { return (UInt64(bitPattern: row["epoch"] as Int64), false) }
        let epoch = Int64.random(in: 1...Int64.max)
        try db.execute(sql: "UPDATE store SET epoch = ?, is_copy = 0 WHERE id = 1", arguments: [epoch])
        try renumberSessions(db, forgetsReceived: isCopy || !waits)
        return (UInt64(bitPattern: epoch), true)
    }

    /// Packet identifiers follow from places, so a place that was given before the loss would be taken for a message that
    /// the client has in flight, and not delivered. And a packet identifier that a client has released, which was lost,
    /// would have its next publication taken for a repetition: delivering that twice is the lesser evil.
    private static func renumberSessions(_ db: Database, forgetsReceived: Bool) throws {
        try db.execute(sql: "UPDATE session_head SET head = head + ?", arguments: [sessionJump])
        if forgetsReceived { try db.execute(sql: "DELETE FROM session_received") }
    }
}
