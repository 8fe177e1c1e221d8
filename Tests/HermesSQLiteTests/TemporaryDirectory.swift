// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import Logging

@testable import HermesSQLite

/// A directory that goes with the object.
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

    /// - Parameter clock: by default one that stands, so that no transaction is cut by its time.
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

    static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
