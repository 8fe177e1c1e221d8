// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Notices when a file of the open database is no longer at its path, because somebody has deleted, moved or replaced
/// the file or its directory. The files are the database itself and its write-ahead log. The server then still writes
/// to the files that it has opened, but the next start does not find them. The data committed there is lost, and nothing
/// else shows the loss.
///
/// State: one `Mutex`.
final class DatabaseFile: Sendable {
    /// The time between two checks.
    static let interval = Duration.seconds(2)

    /// A file that was open when the check began.
    private struct OpenFile {
        let path: String
        /// The device and the inode number of the open file; nil if they are unknown.
        let identity: [UInt64]?

        init(_ path: String) {
            self.path = path
            var file = stat()
            identity = stat(path, &file) == 0 ? Self.identity(of: file) : nil
        }

        /// Whether the path leads to the open file. Only the errors ENOENT and ENOTDIR show that the file is missing.
        var isInPlace: Bool {
            guard let identity else { return true }
            var file = stat()
            guard stat(path, &file) == 0 else { return errno != ENOENT && errno != ENOTDIR }
            return Self.identity(of: file) == identity
        }

        private static func identity(of file: stat) -> [UInt64] {
            [UInt64(truncatingIfNeeded: file.st_dev), UInt64(truncatingIfNeeded: file.st_ino)]
        }
    }

    /// The database, and the write-ahead log, which SQLite keeps in one file as long as the database is open.
    private let files: [OpenFile]
    /// The paths that the last check has found wrong.
    private let missing = Mutex<[String]>([])

    /// - Parameter path: the path under which the database has just been opened.
    init(_ path: String) { files = [OpenFile(path), OpenFile(path + "-wal")] }

    /// The problem that the last check has found, for people; nil if there is none.
    var problem: String? {
        missing.withLock(\.isEmpty) ? nil : "the database file or its write-ahead log was deleted, moved or replaced"
    }

    /// Checks the files, and logs a change.
    func check(_ logger: Logger) {
        let missingNow = files.filter { !$0.isInPlace }.map(\.path)
        let before = missing.withLock { missing in
            defer { missing = missingNow }
            return missing
        }
        for path in missingNow where !before.contains(path) {
            logger.error(
                "a file of the database was deleted, moved or replaced; what is committed now may be lost",
                metadata: [
                    "file": "\(path)",
                    "do": "stop the server, then move the file back; if it was deleted, restore a backup",
                ]
            )
        }
        for path in before where !missingNow.contains(path) {
            logger.notice("a file of the database is back in its place", metadata: ["file": "\(path)"])
        }
    }
}
