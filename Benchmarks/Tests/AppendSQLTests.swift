// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesBench
@testable import HermesSQLite

@Suite struct AppendSQLTests {
    @Test(arguments: SQLiteStore.Durability.allCases)
    func `the bare loop opens its database like the store`(durability: SQLiteStore.Durability) {
        let others = ["PRAGMA wal_autocheckpoint = \(Checkpointer.startPages)", "PRAGMA secure_delete = ON"]
        #expect(AppendSQL.pragmas(durability) == SQLiteStore.tuning(durability) + others)
    }

    @Test func `the bare loop runs the statements of the store`() {
        #expect(AppendSQL.insertMessage == Statements.SQL.insertMessage)
        #expect(AppendSQL.insertEntry == Statements.SQL.insertEntry.single)
        #expect(AppendSQL.insertClientID == Statements.SQL.insertClientID)
        #expect(AppendSQL.updateInbox == Statements.SQL.updateInbox)
        #expect(AppendSQL.updateConversation == Statements.SQL.updateConversation)
        #expect(AppendSQL.settle == BatchWriter.settlingSQL)
        #expect(AppendSQL.rowsToSettle == FreshSweep.startRows)
    }
}
