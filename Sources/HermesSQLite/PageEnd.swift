// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Finds a database file that was cut in the middle of its last page. SQLite reads the missing bytes as zeros, so
/// SQLite's own check may find no problem.
enum PageEnd {
    /// The first bytes of each database file of SQLite 3 (https://www.sqlite.org/fileformat2.html, 1.3).
    private static let magic = Array("SQLite format 3\0".utf8)

    /// Whether a database file ends in the middle of a page.
    ///
    /// The result is false for a file with a log: if the transfer of the log into the file was interrupted, the log
    /// completes the page.
    static func isCut(_ path: String) -> Bool {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard SQLiteStore.fileSize(target + "-wal") == 0, let file = FileHandle(forReadingAtPath: target) else {
            return false
        }
        defer { try? file.close() }
        guard let header = try? file.read(upToCount: magic.count + 2).map(Array.init),
            header.count == magic.count + 2, Array(header.prefix(magic.count)) == magic
        else { return false }
        let size = Int(header[magic.count]) << 8 | Int(header[magic.count + 1])
        // The value 1 stands for 65,536 bytes; other values below 512 are invalid, and SQLite refuses them.
        let pageBytes = size == 1 ? 65_536 : size
        return pageBytes >= 512 && SQLiteStore.fileSize(target) % pageBytes != 0
    }
}
