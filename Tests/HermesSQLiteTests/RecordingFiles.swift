// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDBSQLite
import Synchronization

/// Passes SQLite's file operations on, and records the writes and syncs below one directory. From the record, a test
/// can make the files that a power cut may leave.
///
/// It is installed once, as SQLite's default for the process. Operations on other files are not recorded. State: a
/// `Mutex`.
enum RecordingFiles {
    enum Operation: Sendable {
        case write(file: String, offset: Int, bytes: [UInt8])
        case truncate(file: String, size: Int)
        case sync(file: String)
        case delete(file: String)
    }

    private struct State {
        var directory: String?
        var operations: [Operation] = []
    }

    private static let state = Mutex(State())

    /// The number of operations that have been recorded so far.
    static var count: Int { state.withLock { $0.operations.count } }

    /// Begins to record the operations below a directory.
    static func start(_ directory: String) {
        _ = isInstalled
        state.withLock { $0 = State(directory: directory) }
    }

    /// - Returns: the recorded operations.
    static func stop() -> [Operation] {
        state.withLock { state in
            defer { state = State() }
            return state.operations
        }
    }

    private static func note(_ operation: @autoclosure () -> Operation, _ file: String) {
        state.withLock { state in
            guard let directory = state.directory, file.hasPrefix(directory) else { return }
            state.operations.append(operation())
        }
    }

    // MARK: SQLite's interface

    /// The size of the header and the path, which are in front of the memory of SQLite's own file.
    private static let headerBytes = 16

    // Each value is written once, when it is created. After that, SQLite only reads it.
    nonisolated(unsafe) private static let base: UnsafeMutablePointer<sqlite3_vfs>? = sqlite3_vfs_find(nil)
    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = makeMethods()
    nonisolated(unsafe) private static let files: UnsafeMutablePointer<sqlite3_vfs>? = makeFiles()

    private static let isInstalled: Bool = {
        guard let files else { return false }
        return sqlite3_vfs_register(files, 1) == SQLITE_OK
    }()

    private typealias File = UnsafeMutablePointer<sqlite3_file>

    private static func inner(_ file: File?) -> File? {
        file.map { UnsafeMutableRawPointer($0).advanced(by: headerBytes).assumingMemoryBound(to: sqlite3_file.self) }
    }

    private static func inner(methodsOf file: File?) -> sqlite3_io_methods? { inner(file)?.pointee.pMethods?.pointee }

    private static func path(_ file: File?) -> String {
        guard let file else { return "" }
        let slot = UnsafeMutableRawPointer(file).advanced(by: 8)
        guard let name = slot.load(as: UnsafePointer<CChar>?.self) else { return "" }
        return String(cString: name)
    }

    private static func makeFiles() -> UnsafeMutablePointer<sqlite3_vfs>? {
        guard let base else { return nil }
        let files = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        files.initialize(to: base.pointee)
        files.pointee.pNext = nil
        files.pointee.zName = UnsafePointer(strdup("hermes-recording"))
        files.pointee.szOsFile = base.pointee.szOsFile + Int32(headerBytes)
        files.pointee.xOpen = { _, name, file, flags, outFlags in
            guard let base = RecordingFiles.base, let file, let inner = RecordingFiles.inner(file) else {
                return SQLITE_ERROR
            }
            file.pointee.pMethods = nil
            let code = base.pointee.xOpen(base, name, inner, flags, outFlags)
            guard code == SQLITE_OK else { return code }
            UnsafeMutableRawPointer(file).advanced(by: 8).storeBytes(of: name, as: UnsafePointer<CChar>?.self)
            file.pointee.pMethods = UnsafePointer(RecordingFiles.methods)
            return code
        }
        files.pointee.xDelete = { _, name, syncDirectory in
            guard let base = RecordingFiles.base else { return SQLITE_ERROR }
            let code = base.pointee.xDelete(base, name, syncDirectory)
            if code == SQLITE_OK, let name {
                let file = String(cString: name)
                RecordingFiles.note(.delete(file: file), file)
            }
            return code
        }
        return files
    }

    private static func makeMethods() -> UnsafeMutablePointer<sqlite3_io_methods> {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        var own = sqlite3_io_methods()
        // Version 2 has no memory-mapped reading.
        own.iVersion = 2
        own.xClose = { file in
            let code = RecordingFiles.inner(methodsOf: file)?.xClose(RecordingFiles.inner(file)) ?? SQLITE_ERROR
            file?.pointee.pMethods = nil
            return code
        }
        own.xRead = { file, bytes, count, offset in
            RecordingFiles.inner(methodsOf: file)?.xRead(RecordingFiles.inner(file), bytes, count, offset)
                ?? SQLITE_ERROR
        }
        own.xWrite = { file, bytes, count, offset in
            let code =
                RecordingFiles.inner(methodsOf: file)?.xWrite(RecordingFiles.inner(file), bytes, count, offset)
                ?? SQLITE_ERROR
            let path = RecordingFiles.path(file)
            if code == SQLITE_OK {
                let copy = Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
                RecordingFiles.note(.write(file: path, offset: Int(offset), bytes: copy), path)
            }
            return code
        }
        own.xTruncate = { file, size in
            let code =
                RecordingFiles.inner(methodsOf: file)?.xTruncate(RecordingFiles.inner(file), size) ?? SQLITE_ERROR
            let path = RecordingFiles.path(file)
            if code == SQLITE_OK { RecordingFiles.note(.truncate(file: path, size: Int(size)), path) }
            return code
        }
        own.xSync = { file, flags in
            // The sync is recorded before it is carried out, because it does not include writes of other threads in the
            // meantime.
            let path = RecordingFiles.path(file)
            RecordingFiles.note(.sync(file: path), path)
            return RecordingFiles.inner(methodsOf: file)?.xSync(RecordingFiles.inner(file), flags) ?? SQLITE_ERROR
        }
        own.xFileSize = { file, size in
            RecordingFiles.inner(methodsOf: file)?.xFileSize(RecordingFiles.inner(file), size) ?? SQLITE_ERROR
        }
        own.xLock = { file, level in
            RecordingFiles.inner(methodsOf: file)?.xLock(RecordingFiles.inner(file), level) ?? SQLITE_ERROR
        }
        own.xUnlock = { file, level in
            RecordingFiles.inner(methodsOf: file)?.xUnlock(RecordingFiles.inner(file), level) ?? SQLITE_ERROR
        }
        own.xCheckReservedLock = { file, result in
            RecordingFiles.inner(methodsOf: file)?.xCheckReservedLock(RecordingFiles.inner(file), result)
                ?? SQLITE_ERROR
        }
        own.xFileControl = { file, operation, argument in
            RecordingFiles.inner(methodsOf: file)?.xFileControl(RecordingFiles.inner(file), operation, argument)
                ?? SQLITE_ERROR
        }
        own.xSectorSize = { file in
            RecordingFiles.inner(methodsOf: file)?.xSectorSize(RecordingFiles.inner(file)) ?? 512
        }
        own.xDeviceCharacteristics = { file in
            RecordingFiles.inner(methodsOf: file)?.xDeviceCharacteristics(RecordingFiles.inner(file)) ?? 0
        }
        own.xShmMap = { file, page, size, extend, memory in
            RecordingFiles.inner(methodsOf: file)?.xShmMap(RecordingFiles.inner(file), page, size, extend, memory)
                ?? SQLITE_ERROR
        }
        own.xShmLock = { file, offset, count, flags in
            RecordingFiles.inner(methodsOf: file)?.xShmLock(RecordingFiles.inner(file), offset, count, flags)
                ?? SQLITE_ERROR
        }
        own.xShmBarrier = { file in
            RecordingFiles.inner(methodsOf: file)?.xShmBarrier(RecordingFiles.inner(file))
        }
        own.xShmUnmap = { file, delete in
            RecordingFiles.inner(methodsOf: file)?.xShmUnmap(RecordingFiles.inner(file), delete) ?? SQLITE_ERROR
        }
        methods.initialize(to: own)
        return methods
    }
}

/// The state of some files on the disk: synced writes, and writes that may not have reached the disk.
struct DiskImage {
    private struct Contents {
        var synced: [UInt8] = []
        /// Whether the file certainly has an entry in the directory.
        var isThere = false
        var pending: [RecordingFiles.Operation] = []
    }

    private var files: [String: Contents] = [:]

    mutating func apply(_ operation: RecordingFiles.Operation) {
        switch operation {
        case .write(let file, _, _), .truncate(let file, _):
            files[file, default: Contents()].pending.append(operation)
        case .sync(let file):
            guard var contents = files.removeValue(forKey: file) else { return }
            for pending in contents.pending { Self.carryOut(pending, on: &contents.synced) }
            contents.pending = []
            contents.isThere = true
            files[file] = contents
        case .delete(let file):
            files[file] = nil
        }
    }

    /// Returns the files after a power cut. Some of the unsynced writes have reached the disk, in any order. A write
    /// may have reached it only with some sectors.
    func afterCut(using random: inout some RandomNumberGenerator) -> [String: [UInt8]] {
        var left: [String: [UInt8]] = [:]
        for (file, contents) in files.sorted(by: { $0.key < $1.key }) {
            var bytes = contents.synced
            // The share of the unsynced writes that reach the disk: none, some or all of them.
            let shares: [Double] = [0, 0.5, 0.9, 1]
            let share = shares[Int.random(in: 0..<4, using: &random)]
            var isThere = contents.isThere
            let kept = contents.pending.filter { _ in Double.random(in: 0..<1, using: &random) < share }
            for operation in share == 1 ? kept : kept.shuffled(using: &random) {
                isThere = true
                if share < 1, case .write(let file, let offset, let data) = operation, Bool.random(using: &random) {
                    let sectors = Int.random(in: 0...(data.count / 512), using: &random)
                    Self.carryOut(
                        .write(file: file, offset: offset, bytes: Array(data.prefix(sectors * 512))),
                        on: &bytes
                    )
                } else {
                    Self.carryOut(operation, on: &bytes)
                }
            }
            if isThere { left[file] = bytes }
        }
        return left
    }

    private static func carryOut(_ operation: RecordingFiles.Operation, on bytes: inout [UInt8]) {
        switch operation {
        case .write(_, let offset, let data):
            guard !data.isEmpty else { return }
            if bytes.count < offset + data.count {
                bytes.append(contentsOf: repeatElement(0, count: offset + data.count - bytes.count))
            }
            bytes.replaceSubrange(offset..<offset + data.count, with: data)
        case .truncate(_, let size):
            if bytes.count > size { bytes.removeLast(bytes.count - size) }
        case .sync, .delete: break
        }
    }
}
