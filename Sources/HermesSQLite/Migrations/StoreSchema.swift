// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
internal import Logging

/// The history of the schema. Append only: a released migration is never edited.
enum StoreSchema {
    /// The bytes of "Hrms", which identify a file of Hermes (`PRAGMA application_id`).
    static let applicationID: Int32 = 0x4872_6D73

    typealias Migration = (name: String, migrate: @Sendable (Database) throws -> Void)

    /// The migrations in the order in which they are applied. The file's `PRAGMA user_version` is the number of
    /// migrations that were applied to it.
    static let migrations: [Migration] = [
        ("001 accounts, inboxes and messages", createFirstTables),
        ("002 contacts and groups", createSocialTables),
        ("003 durable sessions and retained publications", createSessionTables),
        ("004 pushes and API keys", createPushTables),
        ("005 push tokens and webhooks", createPushTokenTables),
        ("006 deleted accounts", createDeletionTables),
        ("007 claims that are open", addOpenClaims),
        ("008 what waits, by sender", addEntryWeights),
        ("009 shared subscriptions of queued publications", addShares),
        ("010 where logins come from", addLoginTables),
        ("011 read marks", createReadMarks),
        ("012 indexes of webhooks", indexWebhooks),
        ("013 who pays for sessions and retained publications", addPayers),
        ("014 members and the history before them", addHistoryOfMembers),
        ("015 administrators of the console", createAdministrators),
        ("016 sessions by the numbers of their accounts", keySessionsByNumber),
        ("017 lists of conversations", addConversationLists),
        ("018 numbers of members", countMembers),
        ("019 lists of contacts", indexListedContacts),
        ("020 jumps of the clock", createClockJumps),
        ("021 parts of publications and numbers of groups", rememberParts),
        ("022 names until nothing is left below them", keepNames),
        ("023 codes in the audit log", addAuditCodes),
        ("024 numbers of runs", numberRuns),
        ("025 durability of the last run", noteDurability),
        ("026 identities of push tokens", identifyPushTokens),
        ("027 conversations of dissolved groups", listGoneConversations),
        ("028 numbers of entries in inboxes", countInboxes),
    ]

    static var version: Int { migrations.count }

    /// Applies the migrations that the file lacks. Some take minutes in a large file. So the log shows the beginning
    /// of each migration and the elapsed time every five seconds, except in a new file.
    ///
    /// - Parameters:
    ///   - progress: gets the same reports.
    ///   - migrations: all migrations.
    ///   - interval: the interval of the reports, in seconds.
    static func migrate(
        _ writer: some DatabaseWriter,
        _ logger: Logger,
        _ progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
        migrations: [Migration] = StoreSchema.migrations,
        every interval: Double = LongStep.interval
    ) throws {
        let version = try writer.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
        var migrator = DatabaseMigrator()
        for (index, migration) in migrations.enumerated() {
            migrator.registerMigration(migration.name) { db in
                if version > 0 {
                    logger.notice("bringing the database to this version", metadata: ["step": "\(migration.name)"])
                    progress(.migrating(name: migration.name))
                    try LongStep.run(every: interval, reporter(of: migration.name, logger, progress)) {
                        try migration.migrate(db)
                    }
                } else {
                    try migration.migrate(db)
                }
                try db.execute(sql: "PRAGMA application_id = \(applicationID)")
                try db.execute(sql: "PRAGMA user_version = \(index + 1)")
            }
        }
        try migrator.migrate(writer)
    }

    /// Returns the function that reports that a migration still runs.
    private static func reporter(
        of name: String,
        _ logger: Logger,
        _ progress: @escaping @Sendable (OpeningProgress) -> Void
    ) -> @Sendable (_ seconds: Int64) -> Void {
        { seconds in
            logger.notice(
                "still bringing the database to this version",
                metadata: ["step": "\(name)", "seconds": "\(seconds)"]
            )
            progress(.working)
        }
    }
}
