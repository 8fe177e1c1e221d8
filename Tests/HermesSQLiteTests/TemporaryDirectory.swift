// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization

@testable import HermesSQLite

/// A directory that is removed with the object.
final class TemporaryDirectory: Sendable {
    let path: String

    init(in parent: String = FileManager.default.temporaryDirectory.path) throws {
        path = parent + "/hermes-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var database: String { path + "/" + SQLiteStore.fileName }

    /// - Parameter clock: by default a stopped clock, so that no transaction ends early because of its time.
    func openStore(
        settings: StoreSettings = StoreSettings(),
        durability: SQLiteStore.Durability = .normal,
        clock: any TimeSource = ManualClock(),
        sweepRows: Int = FreshSweep.startRows
    ) throws -> SQLiteStore {
        try SQLiteStore.open(
            directory: path,
            durability: durability,
            settings: settings,
            bootID: RunRecord.bootID,
            clock: clock,
            sweepRows: sweepRows,
            logger: Self.silent
        )
    }

    /// Returns the steps of SQLite's query plan for a statement in a new store.
    ///
    /// - Parameter sql: a statement; all its parameters get the value 1.
    func queryPlan(of sql: String) async throws -> [String] {
        try openStore().close()
        return try await DatabaseQueue(path: database).write { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql.replacing(/[?][0-9]*/, with: "1"))
                .map { $0["detail"] as String }
        }
    }

    static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}

extension SQLiteStore {
    /// The statements that `body` runs on the writer.
    func statements(_ body: () throws -> Void) async throws -> [String] {
        let found = Mutex<[String]>([])
        try await pool.writeWithoutTransaction { db in
            db.trace { event in
                let text = "\(event)"
                found.withLock { $0.append(text) }
            }
        }
        try body()
        try await pool.writeWithoutTransaction { $0.trace(options: []) }
        return found.withLock { $0 }
    }
}

extension Messenger {
    /// Creates a messenger that keeps everything in one store.
    convenience init(over store: any Store, settings: MessageSettings = MessageSettings(), time: any TimeSource) {
        self.init(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            messageSettings: settings,
            time: time
        )
    }
}
