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

/// Notices when the file of the open database is no longer at its path, because somebody has deleted, moved or replaced
/// it, or its directory. The server then still writes to the file that it has opened, but the next start does not find
/// this file: what was committed is lost without any other sign.
///
/// State: one `Mutex`.
final class DatabaseFile: Sendable {
    /// The time between two checks.
    static let interval = Duration.seconds(2)

    private let path: String
    /// The device and the inode number of the open file; nil if they are unknown.
    private let identity: [UInt64]?
    private let isGone = Mutex(false)

    /// - Parameter path: the path under which the database has just been opened.
    init(_ path: String) {
        self.path = path
        var file = stat()
        identity = stat(path, &file) == 0 ? Self.identity(of: file) : nil
    }

    /// The problem that the last check has found, for people; nil if there is none.
    var problem: String? {
        isGone.withLock(\.self) ? "the database file was deleted, moved or replaced" : nil
    }

    /// Checks the file, and logs a change.
    func check(_ logger: Logger) {
        let isGoneNow = !isInPlace
        let wasGone = isGone.withLock { isGone in
            defer { isGone = isGoneNow }
            return isGone
        }
        guard isGoneNow != wasGone else { return }
        if isGoneNow {
            logger.error(
                "the database file was deleted, moved or replaced; what is committed now may be lost",
                metadata: [
                    "file": "\(path)",
                    "do": "stop the server, then move the file back; if it was deleted, restore a backup",
                ]
            )
        } else {
            logger.notice("the database file is back in its place", metadata: ["file": "\(path)"])
        }
    }

    /// Whether the path leads to the open file. An error that does not show that the file is missing is no sign of it.
    private var isInPlace: Bool {
        var file = stat()
        guard stat(path, &file) == 0 else { return errno != ENOENT && errno != ENOTDIR }
        return identity == nil || Self.identity(of: file) == identity
    }

    private static func identity(of file: stat) -> [UInt64] {
        [UInt64(truncatingIfNeeded: file.st_dev), UInt64(truncatingIfNeeded: file.st_ino)]
    }
}
