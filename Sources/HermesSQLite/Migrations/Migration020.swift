// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Creates the table of clock jumps (``ClockJump``). `first` is the first of the times that a jump concerns, and
    /// `until` is the time after the last of them.
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
