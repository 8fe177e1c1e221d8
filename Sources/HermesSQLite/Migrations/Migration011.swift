// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createReadMarks(_ db: Database) throws {
        try db.execute(
            sql: """
                -- How far a user has read a conversation: a mark that is not ahead of it tells nobody anything.
                CREATE TABLE read_mark (
                    user INTEGER NOT NULL,
                    conversation INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    PRIMARY KEY (user, conversation)
                ) STRICT, WITHOUT ROWID;
                """
        )
    }
}
