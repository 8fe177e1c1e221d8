// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The SQL that appends a message, so that the benchmark can write the same rows in a plain loop for comparison.
package enum AppendSQL {
    /// The statements that prepare a connection.
    ///
    /// - Parameter durability: the durability of the store to compare with.
    package static func pragmas(_ durability: SQLiteStore.Durability) -> [String] {
        SQLiteStore.tuning(durability)
            + ["PRAGMA wal_autocheckpoint = \(Checkpointer.startPages)", "PRAGMA secure_delete = ON"]
    }

    package static let insertMessage = Statements.SQL.insertMessage
    package static let insertEntry = Statements.SQL.insertEntry.single
    package static let insertClientID = Statements.SQL.insertClientID
    package static let updateInbox = Statements.SQL.updateInbox
    package static let updateConversation = Statements.SQL.updateConversation

    /// Moves all fresh rows to their permanent tables.
    package static let settle = BatchWriter.settlingSQL
    /// The number of fresh entries after which ``settle`` must run.
    package static let rowsToSettle = FreshSweep.startRows
}
