// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import Synchronization

@testable import HermesSQLite

extension SQLiteStore {
    /// Limits the file to a number of pages of 4 KiB, as a full disk would.
    func limitSize(pages: Int) throws {
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
    }
}

extension Checkpointer {
    /// Changes the size of the log at which it is written back.
    func setStart(pages: Int) { start.store(pages, ordering: .relaxed) }
}
