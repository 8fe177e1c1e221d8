// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("The log of a failing store", .inTurns)
struct FailureLogTests {
    /// Collects the metadata of log lines.
    private final class Lines: Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        var all: [Logger.Metadata] { lines.withLock { $0 } }

        func add(_ metadata: Logger.Metadata?) { lines.withLock { $0.append(metadata ?? [:]) } }
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadataProvider: Logger.MetadataProvider?
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error

        init(_ lines: Lines) { self.lines = lines }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.add(event.metadata) }
    }

    @Test
    func `each text is logged once a minute, with the number of lines left out`() throws {
        let directory = try TemporaryDirectory()
        let (lines, clock) = (Lines(), ManualClock())
        let store = try SQLiteStore.open(
            directory: directory.path,
            durability: .normal,
            settings: StoreSettings(),
            bootID: RunRecord.bootID,
            clock: clock,
            logger: Logger(label: "test") { _ in Handler(lines) }
        )
        for _ in 1...100 {
            #expect(store.failure(DatabaseError(resultCode: .SQLITE_FULL)).code == .storageUnavailable)
        }
        #expect(lines.all.count == 1)
        #expect(lines.all.first?["skipped"] == nil)
        _ = store.failure(DatabaseError(resultCode: .SQLITE_IOERR))
        #expect(lines.all.count == 2, "another text")
        clock.advance(by: .seconds(60))
        _ = store.failure(DatabaseError(resultCode: .SQLITE_FULL))
        #expect(lines.all.count == 3)
        #expect(lines.all.last?["skipped"]?.description == "99")
        #expect(store.failure(CancellationError()).code == .shuttingDown)
        #expect(lines.all.count == 3, "no failure of the store")
        try store.close()
    }
}
