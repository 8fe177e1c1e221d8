// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The epoch of the store's seqs.
///
/// After a loss of commits, seqs that clients have seen are given out again. Clients notice this by the epoch. So the
/// epoch is drawn anew whenever commits may have been lost: after a power cut, and in a copy.
enum StoreMark {
    /// The jump of a kept session's numbers, so that no packet identifier that its client may have in flight is reused
    /// for another message: half of the identifiers (`OutboundWindow.maxSpan`).
    static let sessionJump: Int64 = 32_511

    /// Notes the run's number, and draws a new epoch if commits may have been lost.
    ///
    /// - Parameters:
    ///   - last: the last run, whose end may have lost commits.
    ///   - run: the present run's number.
    ///   - bootID: the present boot id; nil if unknown.
    ///   - waits: whether each commit waited for the disk.
    /// - Returns: the epoch, and whether it is new.
    static func open(
        _ db: Database,
        after last: RunRecord.LastRun,
        run: Int64,
        bootID: String?,
        waits: Bool
    ) throws
        -> (epoch: UInt64, isNew: Bool)
    {
        guard let row = try Row.fetchOne(db, sql: "SELECT epoch, is_copy, run FROM store WHERE id = 1") else {
            throw StoreFailure.damagedRow
        }
        try db.execute(sql: "UPDATE store SET run = ? WHERE id = 1", arguments: [run])
        let isCopy: Bool = row["is_copy"]
        guard isCopy || last.mayHaveLost(bootID: bootID, number: row["run"]) else {
            return (UInt64(bitPattern: row["epoch"] as Int64), false)
        }
        let epoch = Int64.random(in: 1...Int64.max)
        try db.execute(sql: "UPDATE store SET epoch = ?, is_copy = 0 WHERE id = 1", arguments: [epoch])
        let isReplaced = isCopy || last.isReplaced(number: row["run"])
        try renumberSessions(db, forgetsReceived: isReplaced || !waits)
        return (UInt64(bitPattern: epoch), true)
    }

    /// Makes sessions' numbers jump. Packet identifiers follow from numbers, so a reused number would be taken for a
    /// message that the client has in flight, and would not be delivered. With `forgetsReceived`, received identifiers
    /// are dropped: if a release was lost, the client's next publication would be taken for a repetition. Delivering a
    /// message twice is the lesser evil.
    private static func renumberSessions(_ db: Database, forgetsReceived: Bool) throws {
        // Damaged ones stay as they are: a sum out of range would fail the start.
        try db.execute(
            sql: "UPDATE session_head SET head = head + ? WHERE head BETWEEN 0 AND \(PreparedStatement.maxSequence)",
            arguments: [sessionJump]
        )
        guard forgetsReceived else { return }
        try db.execute(sql: "DELETE FROM session_received; DELETE FROM session_received_part")
    }
}
