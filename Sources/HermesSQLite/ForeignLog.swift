// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Logging

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Finds a write-ahead log that belongs to another database file, for example to the file that a backup has replaced.
///
/// SQLite applies any log that it finds next to a database file, and deletes the log of an empty file. So a log of
/// another file is renamed before SQLite opens the database file. Such a log can contain commits that were
/// acknowledged, so it is never deleted.
///
/// A backup is a database without a write-ahead log, and its header shows this. When a server opens a backup, SQLite
/// first changes the header and waits for the disk. Only then does SQLite create a log. So a log next to a file with
/// the header of a backup is never the log of that file, no matter when a server was killed.
enum ForeignLog {
    /// The first bytes of a database file.
    private static let title = Array("SQLite format 3\0".utf8)
    /// The offset of two bytes: the versions that a program must support to write and to read the file.
    private static let versions = 18
    /// The version of a file without a write-ahead log.
    private static let rollback: UInt8 = 1

    /// Renames the log next to the database if the log belongs to another database file. Only the holder of the
    /// ``DirectoryLock`` calls this.
    static func setAside(from database: String, _ logger: Logger) throws(StoreOpenError) {
        // SQLite looks for the log next to the file itself, not next to a link to the file.
        let database = URL(fileURLWithPath: database).resolvingSymlinksInPath().path
        let log = database + "-wal"
        guard SQLiteStore.fileSize(log) > 0, isForeign(to: database) else { return }
        let ending = freeEnding(for: [log, database + "-shm"])
        var names: [String] = []
        for file in [log, database + "-shm"] where FileManager.default.fileExists(atPath: file) {
            guard rename(file, file + ending) == 0 else { throw failure(file, errno) }
            names.append(file + ending)
        }
        // The new names must be on the disk before SQLite opens the database.
        DirectoryFlush.flush(URL(fileURLWithPath: database).deletingLastPathComponent().path)
        logger.warning(
            "set aside a log that belongs to another database file; its commits are not in this database",
            metadata: ["files": "\(names.joined(separator: ", "))"]
        )
    }

    /// Whether the database file is missing, is empty, or has never had a write-ahead log. If so, a log next to it
    /// belongs to another file.
    static func isForeign(to database: String) -> Bool {
        guard FileManager.default.fileExists(atPath: database), SQLiteStore.fileSize(database) > 0 else { return true }
        guard let file = FileHandle(forReadingAtPath: database) else { return false }
        defer { try? file.close() }
        guard let header = try? file.read(upToCount: versions + 2), header.count == versions + 2 else { return false }
        return header.starts(with: title) && header.suffix(2).allSatisfy { $0 == rollback }
    }

    /// Returns the first ending with which none of the files exists.
    private static func freeEnding(for files: [String]) -> String {
        var ending = ".set-aside"
        var number = 1
        while files.contains(where: { FileManager.default.fileExists(atPath: $0 + ending) }) {
            number += 1
            ending = ".set-aside-\(number)"
        }
        return ending
    }

    private static func failure(_ file: String, _ code: Int32) -> StoreOpenError {
        StoreOpenError(
            reason: code == ENOSPC || code == EDQUOT ? .diskFull : .unwritable,
            path: file,
            message: """
                The log belongs to another database file and cannot be renamed (\(String(cString: strerror(code)))). \
                Move it away, then start again.
                """
        )
    }
}
