// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addShares(_ db: Database) throws {
        try db.execute(
            sql: """
                -- The shared subscription that it came by, as clients write it; NULL: by one of the session's own.
                ALTER TABLE session_queue ADD COLUMN share TEXT;
                ALTER TABLE session_queue_fresh ADD COLUMN share TEXT;
                CREATE INDEX session_queue_share ON session_queue (session, seq) WHERE share IS NOT NULL;
                CREATE INDEX session_queue_fresh_share ON session_queue_fresh (session, seq) WHERE share IS NOT NULL;
                """
        )
    }
}
