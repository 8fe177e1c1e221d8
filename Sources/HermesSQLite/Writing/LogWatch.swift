// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDBSQLite
import HermesCore

/// Reports after each commit how many pages the log has.
final class LogWatch: Sendable {
    let committed = Hook<Int>()

    /// Observes the commits of a connection. The observer replaces SQLite's automatic checkpoint on the connection. The
    /// connection must not outlive this object.
    func attach(to connection: OpaquePointer?) {
        sqlite3_wal_hook(
            connection,
            { context, _, _, pages in
                guard let context else { return SQLITE_OK }
                // This object lives as long as the connection, whose configuration holds it.
                let watch = Unmanaged<LogWatch>.fromOpaque(context).takeUnretainedValue()
                watch.committed(Int(pages))
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
