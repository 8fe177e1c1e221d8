// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Logging
import Testing

@testable import HermesSQLite

@Suite("The log of a failing store", .inTurns)
struct FailureLogTests {
    @Test
    func `each text is logged once a minute, with the number of lines left out`() throws {
        let directory = try TemporaryDirectory()
        let (lines, clock) = (LogRecorder(), ManualClock())
        let store = try SQLiteStore.open(
            directory: directory.path,
            durability: .normal,
            settings: StoreSettings(),
            bootID: RunRecord.bootID,
            clock: clock,
            logger: lines.logger(.error)
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
