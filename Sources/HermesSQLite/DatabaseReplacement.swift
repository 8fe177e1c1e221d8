// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HermesCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Replaces a data directory's database with a copy of a database, and keeps the former files.
///
/// The process may end between any two steps. The directory then has either the former database with its log, or the
/// new database. For this reason, the former files are not moved away first. They get second names (hard links) in a
/// new folder, and one `rename` puts the copy in their place. If the former log is still next to the copy after that,
/// ``ForeignLog`` recognizes the log and sets it aside. Only the holder of the ``DirectoryLock`` uses this type.
struct DatabaseReplacement {
    /// The steps, in their order.
    enum Step: CaseIterable, Sendable {
        /// The copy is complete and on the disk, under the name ``partial``.
        case copied
        /// The copy was checked and marked.
        case checked
        /// The former files have second names.
        case linked
        /// The copy is the database.
        case placed
        /// The folder with the former files has its final name.
        case named
        /// The former log is no longer next to the database.
        case cleared
    }

    /// The path of the database without symbolic links, because SQLite looks for the log next to the file itself.
    private let database: String
    /// The directory of the database.
    private let folder: String
    /// The path of the copy, until the copy is the database.
    let partial: String
    /// The folder with the second names of the former files, until the copy is the database.
    private let links: String

    private static let logEndings = ["-wal", "-shm"]

    /// - Parameter directory: the data directory.
    init(directory: String) {
        let path = directory + "/" + SQLiteStore.fileName
        database = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        folder = URL(fileURLWithPath: database).deletingLastPathComponent().path
        partial = database + ".restoring"
        links = database + ".replaced"
    }

    /// Refuses a database with a rollback journal. SQLite would apply the journal to the copy.
    func refuseJournal() throws(StoreOpenError) {
        let journal = database + "-journal"
        guard SQLiteStore.fileSize(journal) > 0 else { return }
        throw StoreOpenError(
            reason: .failed,
            path: journal,
            message: """
                An interrupted change of the former database lies here. Move this file and \(SQLiteStore.fileName) away \
                together, then try again.
                """
        )
    }

    /// Clears the folder that an interrupted replacement has left. If that replacement had already put its copy in
    /// place, the former files are kept.
    ///
    /// - Parameter now: the time for the name of the folder with the former files.
    func clearEarlier(now: Date) throws(StoreOpenError) {
        guard FileManager.default.fileExists(atPath: links) else { return }
        let former = links + "/" + SQLiteStore.fileName
        guard SQLiteStore.fileSize(former) > 0, Self.inode(of: former) != Self.inode(of: database) else {
            // The folder was just created, or it has only second names of files that are still in use.
            for ending in [""] + Self.logEndings { unlink(former + ending) }
            guard rmdir(links) == 0 else { throw Self.failure(links, errno) }
            return
        }
        _ = try nameLinks(now: now)
    }

    /// Copies a database, and its log if it has one, and waits until the copy is on the disk.
    ///
    /// - Parameter source: the path of the database, without symbolic links.
    func copy(from source: String) throws(StoreOpenError) {
        try copyFile(source, to: partial)
        if SQLiteStore.fileSize(source + "-wal") > 0, !ForeignLog.isForeign(to: source) {
            try copyFile(source + "-wal", to: partial + "-wal")
        }
    }

    /// Removes the copy. The database stays as it is.
    func removePartial() {
        for ending in ["", "-journal"] + Self.logEndings { unlink(partial + ending) }
    }

    /// Puts the copy in the place of the database.
    ///
    /// - Parameters:
    ///   - now: the time for the name of the folder with the former files.
    ///   - done: called after each step.
    /// - Returns: the path of the folder with the former files; nil if there were none.
    func place(now: Date, _ done: (Step) -> Void) throws(StoreOpenError) -> String? {
        try flush(partial)
        let former = ([""] + Self.logEndings).filter { FileManager.default.fileExists(atPath: database + $0) }
        if !former.isEmpty { try linkFormer(former) }
        done(.linked)
        guard rename(partial, database) == 0 else { throw Self.failure(database, errno) }
        DirectoryFlush.flush(folder)
        done(.placed)
        var kept: String?
        if !former.isEmpty { kept = try nameLinks(now: now) }
        done(.named)
        for ending in Self.logEndings { unlink(database + ending) }
        DirectoryFlush.flush(folder)
        done(.cleared)
        return kept
    }

    /// Gives the former files second names in a new folder.
    private func linkFormer(_ endings: [String]) throws(StoreOpenError) {
        guard mkdir(links, 0o700) == 0 else { throw Self.failure(links, errno) }
        giveFolder()
        for ending in endings {
            guard link(database + ending, links + "/" + SQLiteStore.fileName + ending) == 0 else {
                let code = errno
                for ending in endings { unlink(links + "/" + SQLiteStore.fileName + ending) }
                rmdir(links)
                throw StoreOpenError(
                    reason: code == ENOSPC || code == EDQUOT ? .diskFull : .unwritable,
                    path: database + ending,
                    message: """
                        The file cannot be kept under a second name (\(String(cString: strerror(code)))). Nothing was \
                        changed. If the file system has no hard links, restore by hand (docs/operations.md).
                        """
                )
            }
        }
        DirectoryFlush.flush(links)
        DirectoryFlush.flush(folder)
    }

    /// If root has created the folder, this gives the folder to the owner of its parent directory.
    private func giveFolder() {
        let descriptor = open(links, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        DirectoryOwner.give(descriptor, toOwnerOf: folder)
        close(descriptor)
    }

    /// Gives the folder with the former files its final name: `replaced-` and the time (UTC).
    private func nameLinks(now: Date) throws(StoreOpenError) -> String {
        let time = now.formatted(Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
        var path = "\(folder)/replaced-\(time)"
        var number = 1
        while FileManager.default.fileExists(atPath: path) {
            number += 1
            path = "\(folder)/replaced-\(time)-\(number)"
        }
        guard rename(links, path) == 0 else { throw Self.failure(links, errno) }
        DirectoryFlush.flush(folder)
        return path
    }

    // MARK: Files

    /// The number of bytes that are copied at once.
    private static let chunkBytes = 1 << 20

    /// Copies a file to a new file, which only the owner of the folder can open.
    private func copyFile(_ source: String, to target: String) throws(StoreOpenError) {
        let input = open(source, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else {
            throw StoreOpenError(
                reason: .failed,
                path: source,
                message: "Cannot be read (\(String(cString: strerror(errno)))). Check its owner and mode."
            )
        }
        defer { close(input) }
        // With O_EXCL, a link that somebody has put at this path is not followed.
        let output = DirectoryOwner.openFile(target, in: folder, O_WRONLY | O_EXCL | O_CLOEXEC)
        guard output >= 0 else { throw Self.failure(target, errno) }
        defer { close(output) }
        var buffer = [UInt8](repeating: 0, count: Self.chunkBytes)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(input, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw StoreOpenError(
                    reason: .failed,
                    path: source,
                    message: "Cannot be read (\(String(cString: strerror(errno)))). Look into the system's log."
                )
            }
            if count == 0 { break }
            var written = 0
            while written < count {
                let result = buffer.withUnsafeBytes { bytes in
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[written..<count])
                    return write(output, rest.baseAddress, rest.count)
                }
                if result < 0, errno == EINTR { continue }
                guard result > 0 else { throw Self.failure(target, result == 0 ? EIO : errno) }
                written += result
            }
        }
        guard fsync(output) == 0 else { throw Self.failure(target, errno) }
    }

    /// Waits until a file is on the disk.
    private func flush(_ path: String) throws(StoreOpenError) {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(path, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Self.failure(path, errno) }
    }

    /// Returns the inode number of a file; 0 if there is no such file.
    private static func inode(of path: String) -> UInt64 {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0
    }

    private static func failure(_ path: String, _ code: Int32) -> StoreOpenError {
        let isFull = code == ENOSPC || code == EDQUOT
        return StoreOpenError(
            reason: isFull ? .diskFull : .unwritable,
            path: path,
            message: isFull
                ? "The disk is full. Free some space and try again."
                : "Cannot be written (\(String(cString: strerror(code)))). Check the directory's owner, mode and disk."
        )
    }
}
