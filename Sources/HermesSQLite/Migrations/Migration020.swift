// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Jumps of the clock (``ClockJump``), with the first of the times that they concern and the one behind the last.
    @Sendable static func createClockJumps(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE clock_jump (
                    number INTEGER PRIMARY KEY,
                    first INTEGER NOT NULL,
                    until INTEGER NOT NULL,
                    length INTEGER NOT NULL
                ) STRICT;
                """
        )
    }
}
