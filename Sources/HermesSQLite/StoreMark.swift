// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The epoch of the store's seqs.
///
/// After a loss of commits, seqs that clients have seen are assigned again. A new epoch shows the loss to the
/// clients. So the store chooses a new epoch whenever commits may have been lost: after a power cut, and in a copy.
enum StoreMark {
    /// The amount by which a kept session's numbers increase: half of all packet identifiers
    /// (`OutboundWindow.maxSpan`). So no packet identifier that the session's client may have in flight is reused for
    /// another message.
    static let sessionJump: Int64 = 32_511

    /// Stores the run's number and durability, and chooses a new epoch if the last run's commits may have been lost.
    ///
    /// - Parameters:
    ///   - last: the last run, whose end may have lost commits.
    ///   - run: the present run's number.
    ///   - bootID: the present boot id; nil if it is unknown.
    ///   - waits: whether each commit of the present run waits for the disk.
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
        guard let row = try Row.fetchOne(db, sql: "SELECT epoch, is_copy, run, waits FROM store WHERE id = 1") else {
            throw StoreFailure.damagedRow
        }
        try db.execute(sql: "UPDATE store SET run = ?, waits = ? WHERE id = 1", arguments: [run, waits])
        let isCopy: Bool = row["is_copy"]
        guard isCopy || last.mayHaveLost(bootID: bootID, number: row["run"]) else {
            return (UInt64(bitPattern: row["epoch"] as Int64), false)
        }
        let epoch = Int64.random(in: 1...Int64.max)
        try db.execute(sql: "UPDATE store SET epoch = ?, is_copy = 0 WHERE id = 1", arguments: [epoch])
        let isReplaced = isCopy || last.isReplaced(number: row["run"])
        let lastRunWaited: Bool = row["waits"]
        try renumberSessions(db, forgetsReceived: isReplaced || !lastRunWaited)
        return (UInt64(bitPattern: epoch), true)
    }

    /// Skips ``sessionJump`` message numbers in each kept session. The packet identifier of a message is derived from
    /// its number. If a number were reused, the client could take the new message for one that it has in flight, and
    /// the new message would not be delivered.
    ///
    /// With `forgetsReceived`, the received packet identifiers are dropped. If an identifier whose release was lost
    /// stayed in the store, the client's next publication with this identifier would count as a repetition and be
    /// lost. Delivering a message twice is better than losing a message.
    private static func renumberSessions(_ db: Database, forgetsReceived: Bool) throws {
        // Damaged numbers stay as they are, because a sum out of range would make the start fail.
        try db.execute(
            sql: "UPDATE session_head SET head = head + ? WHERE head BETWEEN 0 AND \(PreparedStatement.maxSequence)",
            arguments: [sessionJump]
        )
        guard forgetsReceived else { return }
        try db.execute(sql: "DELETE FROM session_received; DELETE FROM session_received_part")
    }
}
