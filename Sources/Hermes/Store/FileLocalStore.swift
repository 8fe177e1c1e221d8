// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NIOConcurrencyHelpers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A store that keeps, in one file, the data that a client needs in the next run of the app: the outbox, the cursor in
/// the inbox and the last entries. The store appends each change, and rewrites the file when most of it is out of date.
///
/// The file holds message contents, but no token and no password: keep it where only the app can read it. A process
/// that is killed during a write loses only that write. Only one process at a time can use the file, so on iOS keep
/// the file in the app's own container, not in a shared container.
///
/// A lock protects the pending writes. The file is written on one queue. A lock also protects the file, because the
/// compiler cannot check the use of the queue.
public final class FileLocalStore: LocalStore {
    private struct Write {
        let changes: [LocalChange]
        let isDurable: Bool
        let completion: @Sendable (Result<Void, any Error>) -> Void
    }

    /// The largest total size of the records, in bytes. The file can grow to several times this size before it is
    /// rewritten.
    let maxBytes: Int
    /// The number of damaged parts of the file that were skipped when it was opened.
    package let damagedFrames: Int

    private let waiting = NIOLockedValueBox<[Write]>([])
    private let log: NIOLockedValueBox<LogFile>
    private let queue = DispatchQueue(label: "hermes.local-store")

    /// Opens or creates a file.
    ///
    /// - Parameters:
    ///   - path: the path of the file, whose folder must exist. If the file has another format, the suffix ".damaged"
    ///     is added to its name, and a new file is created.
    ///   - maxBytes: the largest total size of the records, in bytes; a change that would exceed this size is refused.
    ///     The file can grow to several times this size before it is rewritten.
    /// - Throws: HermesClientError `.storeFailed` if the file cannot be opened, or if another process has it open.
    public convenience init(path: String, maxBytes: Int = 16 * 1_048_576) throws {
        try self.init(path: path, maxBytes: maxBytes, synchronize: LogFile.synchronize)
    }

    /// Opens or creates a file. The function `synchronize` flushes the file to the disk.
    init(
        path: String,
        maxBytes: Int = 16 * 1_048_576,
        synchronize: @escaping @Sendable (_ descriptor: CInt, _ path: String) throws -> Void
    ) throws {
        let file = try LogFile(path: path, synchronize: synchronize)
        self.maxBytes = maxBytes
        damagedFrames = file.damagedFrames
        log = NIOLockedValueBox(file)
    }

    deinit { log.withLockedValue { $0.close() } }

    /// Returns all records.
    package func records() -> [LocalRecord] { log.withLockedValue { $0.table.records } }

    /// Carries out changes.
    package func write(
        _ changes: [LocalChange],
        durably: Bool,
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let isFirst = waiting.withLockedValue { waiting in
            waiting.append(Write(changes: changes, isDurable: durably, completion: completion))
            return waiting.count == 1
        }
        // Changes that arrive before the queue runs are written together.
        if isFirst { queue.async { self.writeWaiting() } }
    }

    private func writeWaiting() {
        let writes = waiting.withLockedValue { waiting in
            defer { waiting = [] }
            return waiting
        }
        let results = log.withLockedValue { log -> [Result<Void, any Error>] in
            let isDurable = writes.contains(where: \.isDurable)
            do { try log.repair() } catch { return writes.map { _ in .failure(error) } }
            let before = isDurable ? log.mark : nil
            var results: [Result<Void, any Error>] = writes.map { write in
                Result { try log.append(write.changes, maxBytes: maxBytes) }
            }
            do {
                if isDurable { try log.synchronize() }
            } catch {
                // A change that was reported as failed must not reappear at the next start.
                if let before { log.rollBack(to: before) }
                results = results.map { result in result.flatMap { .failure(error) } }
            }
            // If the rewrite fails, the old file still holds all records.
            try? log.compactIfWorthwhile()
            return results
        }
        for (write, result) in zip(writes, results) { write.completion(result) }
    }
}

/// An open log and its records.
struct LogFile {
    private let path: String
    private var descriptor: CInt
    private(set) var table: RecordTable
    private(set) var damagedFrames: Int
    private var length: Int
    /// The salt of the file's checksums; nil in a file of version 1.
    private var salt: UInt64?
    /// Whether the file's state is unknown. If so, the file is rewritten before anything is added to it.
    private var isBroken = false
    private let bringToDisk: @Sendable (CInt, String) throws -> Void

    /// The file size above which a rewrite is worthwhile, in bytes.
    private static let worthwhile = 65_536

    init(path: String, synchronize: @escaping @Sendable (CInt, String) throws -> Void) throws {
        self.path = path
        bringToDisk = synchronize
        descriptor = try Self.open(path, O_RDWR | O_CREAT)
        do {
            let bytes = try Self.readAll(descriptor)
            if let contents = RecordLog.read(bytes) {
                table = contents.table
                damagedFrames = contents.damagedFrames
                length = contents.end
                salt = contents.salt
            } else {
                guard rename(path, path + ".damaged") == 0 else { throw Self.failure("move", path) }
                _ = Self.closeFile(descriptor)
                descriptor = try Self.open(path, O_RDWR | O_CREAT)
                table = RecordTable()
                damagedFrames = 1
                length = 0
            }
            guard ftruncate(descriptor, off_t(length)) == 0 else { throw Self.failure("write", path) }
            if length == 0 {
                let salt = UInt64.random(in: 0 ... .max)
                let header = RecordLog.header(salt)
                try Self.write(header, to: descriptor, at: 0, path)
                self.salt = salt
                length = header.count
                try bringToDisk(descriptor, path)
                Self.synchronizeFolder(of: path)
            }
        } catch {
            _ = Self.closeFile(descriptor)
            throw error
        }
        // If the rewrite fails, the file keeps version 1.
        if salt == nil { try? writeAnew() }
    }

    func close() { _ = Self.closeFile(descriptor) }

    mutating func append(_ changes: [LocalChange], maxBytes: Int) throws {
        guard !changes.isEmpty else { return }
        guard !isBroken else { throw HermesClientError(.storeFailed, "an earlier write to \(path) failed") }
        guard let frame = RecordLog.frame(changes, salt: salt) else {
            throw HermesClientError(.storeFailed, "a record's key is 1 to 255 bytes, its value at most 8 MiB")
        }
        let bytes = table.bytes(after: changes)
        guard bytes <= maxBytes || bytes < table.bytes else {
            throw HermesClientError(.storeFull, "\(path) would exceed its limit of \(maxBytes) bytes")
        }
        do {
            try Self.write(frame, to: descriptor, at: length, path)
        } catch {
            // Remove the partial frame, so that the next frame follows the last complete frame.
            isBroken = ftruncate(descriptor, off_t(length)) != 0
            throw error
        }
        length += frame.count
        table.apply(changes)
    }

    func synchronize() throws { try bringToDisk(descriptor, path) }

    /// Rewrites the file if its state is unknown. Called before changes are added. It must not be called between
    /// `mark` and `rollBack`, because a mark holds the length of the file before the rewrite.
    mutating func repair() throws {
        if isBroken { try writeAnew() }
    }

    /// The present state, for `rollBack`.
    var mark: (table: RecordTable, length: Int) { (table, length) }

    /// Undoes all changes since the mark, because they could not be flushed. After such a failure, the file's contents
    /// on the disk are unknown.
    mutating func rollBack(to mark: (table: RecordTable, length: Int)) {
        table = mark.table
        length = mark.length
        isBroken = true
        _ = ftruncate(descriptor, off_t(length))
    }

    /// Rewrites the file if most of it is out of date. The new file replaces the old one after the new file is on the
    /// disk.
    mutating func compactIfWorthwhile() throws {
        guard length > Self.worthwhile, length / 4 > table.bytes else { return }
        try writeAnew()
    }

    private mutating func writeAnew() throws {
        let temporary = path + ".new"
        _ = unlink(temporary)
        let new = try Self.open(temporary, O_RDWR | O_CREAT | O_EXCL)
        let newSalt = UInt64.random(in: 0 ... .max)
        var newLength = 0
        do {
            var pieces = RecordLog.header(newSalt)
            for record in table.records {
                pieces += RecordLog.frame([LocalChange(key: record.key, value: record.value)], salt: newSalt) ?? []
                guard pieces.count > Self.worthwhile else { continue }
                try Self.write(pieces, to: new, at: newLength, temporary)
                newLength += pieces.count
                pieces = []
            }
            try Self.write(pieces, to: new, at: newLength, temporary)
            newLength += pieces.count
            try bringToDisk(new, temporary)
            guard rename(temporary, path) == 0 else { throw Self.failure("replace", path) }
        } catch {
            _ = Self.closeFile(new)
            _ = unlink(temporary)
            throw error
        }
        Self.synchronizeFolder(of: path)
        _ = Self.closeFile(descriptor)
        descriptor = new
        length = newLength
        salt = newSalt
        isBroken = false
    }

    // MARK: - The system
    /// Opens and locks a file.
    ///
    /// - Parameter willLock: the function to call before the file is locked, for tests.
    static func open(_ path: String, _ flags: CInt, willLock: () -> Void = {}) throws -> CInt {
        for _ in 1...maxTries {
            let descriptor = try openOnce(path, flags, willLock: willLock)
            if isFile(descriptor, at: path) { return descriptor }
            // Another process rewrote the file before the lock, so this is the lock of the old file.
            _ = closeFile(descriptor)
        }
        throw HermesClientError(.storeFailed, "cannot lock \(path): it is being replaced again and again")
    }

    private static let maxTries = 10

    /// Whether the open file is the file at the path.
    private static func isFile(_ descriptor: CInt, at path: String) -> Bool {
        var opened = stat()
        var present = stat()
        guard fstat(descriptor, &opened) == 0, stat(path, &present) == 0 else { return false }
        return opened.st_dev == present.st_dev && opened.st_ino == present.st_ino
    }

    private static func openOnce(_ path: String, _ flags: CInt, willLock: () -> Void) throws -> CInt {
        #if canImport(Glibc)
        let descriptor = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        #elseif canImport(Musl)
        let descriptor = Musl.open(path, flags | O_CLOEXEC, 0o600)
        #elseif canImport(Darwin)
        let descriptor = Darwin.open(path, flags | O_CLOEXEC, 0o600)
        #endif
        guard descriptor >= 0 else { throw failure("open", path) }
        willLock()
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = failure("lock (is another store using it?)", path)
            _ = closeFile(descriptor)
            throw error
        }
        return descriptor
    }

    private static func closeFile(_ descriptor: CInt) -> CInt {
        #if canImport(Glibc)
        Glibc.close(descriptor)
        #elseif canImport(Musl)
        Musl.close(descriptor)
        #elseif canImport(Darwin)
        Darwin.close(descriptor)
        #endif
    }

    private static func readAll(_ descriptor: CInt) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: worthwhile)
        while true {
            let count = pread(descriptor, &piece, piece.count, off_t(bytes.count))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("read", "the store") }
            guard count > 0 else { return bytes }
            bytes += piece[..<count]
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: CInt, at offset: Int, _ path: String) throws {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { rest in
                pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset + written))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("write", path) }
            written += count
        }
    }

    static func synchronize(_ descriptor: CInt, _ path: String) throws {
        #if canImport(Darwin)
        // On Apple platforms fsync does not flush the disk's own cache.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else { throw failure("write", path) }
    }

    /// Flushes the folder, so that the file's name is on the disk too. Some file systems cannot flush a folder and
    /// need no such flush, so errors are ignored.
    private static func synchronizeFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        #if canImport(Glibc)
        let descriptor = Glibc.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_CLOEXEC)
        #elseif canImport(Musl)
        let descriptor = Musl.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_CLOEXEC)
        #elseif canImport(Darwin)
        let descriptor = Darwin.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_CLOEXEC)
        #endif
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = closeFile(descriptor)
    }

    private static func failure(_ what: String, _ path: String) -> HermesClientError {
        HermesClientError(.storeFailed, "cannot \(what) \(path): \(String(cString: strerror(errno)))")
    }
}
