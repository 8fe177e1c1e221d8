// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Long steps of opening a database", .inTurns)
struct LongStepTests {
    @Test
    func `a step that takes long is reported again and again`() {
        let reports = DispatchSemaphore(value: 0)
        let report: @Sendable (Int64) -> Void = { _ in reports.signal() }
        let results = LongStep.run(every: 0.005, report) {
            [reports.wait(timeout: .now() + 30), reports.wait(timeout: .now() + 30)]
        }
        #expect(results == [.success, .success])
    }

    @Test
    func `the log says that a migration still runs`() throws {
        let log = LogRecorder()
        let working = DispatchSemaphore(value: 0)
        let queue = try DatabaseQueue()
        try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 1") }
        let waits: StoreSchema.Migration = (
            name: "002 waits", migrate: { _ in #expect(working.wait(timeout: .now() + 30) == .success) }
        )
        let report: @Sendable (OpeningProgress) -> Void = { if $0 == .working { working.signal() } }
        try StoreSchema.migrate(queue, log.logger(.notice), report, migrations: [waits], every: 0.005)
        // The first line reports the beginning.
        #expect(log.all.count >= 2)
        #expect(log.all.allSatisfy { $0["step"]?.description == "002 waits" })
        #expect(log.all.dropFirst().allSatisfy { Int($0["seconds"]?.description ?? "") != nil })
    }

    @Test
    func `an older file names its migrations, a new file and a present one none`() async throws {
        let directory = try TemporaryDirectory()
        let seen = Mutex<[OpeningProgress]>([])
        func open() throws -> [OpeningProgress] {
            seen.withLock { $0 = [] }
            let store = try SQLiteStore.open(directory: directory.path, logger: TemporaryDirectory.silent) { progress in
                if progress != .working { seen.withLock { $0.append(progress) } }
            }
            try store.close()
            return seen.withLock { $0 }
        }
        #expect(try open() == [])
        #expect(try open() == [])
        let queue = try DatabaseQueue(path: directory.database)
        try await queue.write { db in
            try db.takeBackCountsOfInboxes()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '028'; PRAGMA user_version = 27")
        }
        try queue.close()
        // Another program has written to the file, so it is checked first.
        #expect(try open() == [.checking, .migrating(name: "028 numbers of entries in inboxes")])
    }
}
