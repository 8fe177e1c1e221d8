// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The data directory's record of its last run: whether it closed the database, the machine's boot id at that time, and
/// the run's number. A short file beside the database, written in place, so that a full disk does not prevent rewriting
/// it. Only the holder of the ``DirectoryLock`` touches it.
///
/// It says "closed" only after the database was closed, and "open" before anything is written again. A record that is
/// not understood, or does not match the database, counts as not closed.
///
/// Each run has a random number, which the database contains, too. A database with another number is an earlier copy,
/// even if it has the inode of the file that it replaces.
///
/// A copy of the whole directory has a record of its own, which matches the copied database. It is recognized by the
/// time of birth of its files, or, where it was written into the present files, by the marker: an empty file whose name
/// has the number, and changes with each start and each stop. So the copied marker is a new file, and the present one
/// stays beside it, unless somebody removes it.
struct RunRecord {
    /// The end of the last run.
    enum Ending: Sendable, Hashable {
        /// The database was closed and is unchanged.
        case closed
        /// The database was not closed, or something else has written to it since.
        ///
        /// - Parameter bootID: the boot id when the run began; nil if unknown, because there was no record.
        case unclosed(bootID: String?)
        /// The present database is another file, or was changed by something else: perhaps an earlier copy.
        case replaced

        /// Whether commits that clients have seen may be missing.
        ///
        /// - Parameter current: the present boot id; nil if unknown.
        func mayHaveLost(bootID current: String?) -> Bool {
            switch self {
            case .closed: false
            case .unclosed(let bootID): bootID == nil || bootID != current
            case .replaced: true
            }
        }
    }

    /// The last run, as the record knows it.
    struct LastRun: Sendable {
        var ending: Ending
        /// The run's number. While a server starts, the record has the last run's number and its own. Empty: unknown,
        /// because there was no record, or that of an earlier version.
        var numbers: [Int64] = []

        /// Whether commits that clients have seen may be missing.
        ///
        /// - Parameters:
        ///   - current: the present boot id; nil if unknown.
        ///   - number: the number in the present database.
        func mayHaveLost(bootID current: String?, number: Int64) -> Bool {
            ending.mayHaveLost(bootID: current) || isReplaced(number: number)
        }

        /// Whether the present database may be an earlier copy. This does not depend on how durable its commits were.
        ///
        /// - Parameter number: the number in the present database.
        func isReplaced(number: Int64) -> Bool {
            switch ending {
            case .replaced: true
            case .unclosed(bootID: nil) where numbers.isEmpty: true
            case .closed, .unclosed: !numbers.isEmpty && !numbers.contains(number)
            }
        }
    }

    /// The record's name in the data directory.
    static let fileName = "hermes.run"
    private static let bytes = 512
    private static let title = "hermes run 2"

    private let directory: String
    private let path: String
    private let database: String
    private let bootID: String?
    /// The numbers that the present database may have.
    private var numbers: [Int64] = []

    /// - Parameter bootID: the present boot id.
    init(directory: String, database: String, bootID: String? = RunRecord.bootID) {
        self.bootID = bootID
        self.directory = directory
        path = directory + "/" + Self.fileName
        self.database = database
    }

    /// The boot id, which identifies the time since the machine started; nil where the system has none.
    static let bootID: String? = {
        #if canImport(Darwin)
        var text = [CChar](repeating: 0, count: 64)
        var size = text.count
        guard sysctlbyname("kern.bootsessionuuid", &text, &size, nil, 0) == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        #else
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        let id = text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
        return id.isEmpty ? nil : id
        #endif
    }()

    /// The last run, by the record and the present database's file.
    func lastRun() -> LastRun {
        guard let data = FileManager.default.contents(atPath: path), data.count == Self.bytes else {
            return LastRun(ending: .unclosed(bootID: nil))
        }
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
        guard lines.count >= 3, lines[0] == Self.title else { return LastRun(ending: .unclosed(bootID: nil)) }
        var last = LastRun(ending: ending(boot: lines[1], state: lines[2]))
        if lines.count > 3, lines[3].hasPrefix("run ") {
            last.numbers = lines[3].dropFirst(4).split(separator: " ").compactMap { Int64($0) }
        }
        if !last.numbers.isEmpty, !isMarked(last.numbers, isClosed: lines[2].hasPrefix("closed ")) {
            last.ending = .replaced
        }
        return last
    }

    private func ending(boot: Substring, state: Substring) -> Ending {
        let boot = boot.hasPrefix("boot ") ? String(boot.dropFirst(5)) : ""
        if let fingerprint = fingerprint(), state == "closed \(fingerprint)" { return .closed }
        if state.hasPrefix("closed ") { return .replaced }
        // A copy of the files of a running server looks like a killed one, but for this.
        if state.hasPrefix("open "), state != "open \(identity())" { return .replaced }
        return .unclosed(bootID: boot.isEmpty ? nil : boot)
    }

    /// Records that the database is open. Until it is closed, it counts as not reliable.
    ///
    /// - Parameters:
    ///   - bootID: the boot whose end may lose commits.
    ///   - numbers: the numbers that the database may have; empty: unknown.
    mutating func markOpen(bootID: String?, numbers: [Int64]) throws(StoreOpenError) {
        self.numbers = numbers
        var failure: Int32 = 0
        if let number = numbers.first { failure = mark(number, isClosed: false) }
        if failure == 0 { failure = write("boot \(bootID ?? "")\nopen \(identity())") }
        // The new number, which the database is about to have.
        if failure == 0, numbers.count > 1, let number = numbers.last { failure = mark(number, isClosed: false) }
        guard failure == 0 else {
            let isFull = failure == ENOSPC || failure == EDQUOT
            let why = String(cString: strerror(failure))
            throw StoreOpenError(
                reason: isFull ? .diskFull : .unwritable,
                path: path,
                message: isFull
                    ? "The disk is full. Free some space and start again."
                    : "Cannot be written (\(why)). Check its owner, mode and disk."
            )
        }
    }

    /// Records that the database was closed, if its log is empty. If the record cannot be written, the next start
    /// checks the database, which does no harm.
    func markClosed() {
        guard let fingerprint = fingerprint() else { return }
        guard write("boot \(bootID ?? "")\nclosed \(fingerprint)") == 0, let number = numbers.last else { return }
        _ = mark(number, isClosed: true)
    }

    // MARK: Markers

    /// An empty file beside the record; there is one, unless an earlier copy was written into the directory.
    private struct Marker: Equatable {
        let number: Int64
        let isClosed: Bool

        private static let prefix = fileName + "-"
        private static let closed = "-closed"

        init(number: Int64, isClosed: Bool) {
            self.number = number
            self.isClosed = isClosed
        }

        /// - Parameter name: a file's name; nil if it is none of a marker.
        init?(name: String) {
            guard name.hasPrefix(Self.prefix) else { return nil }
            isClosed = name.hasSuffix(Self.closed)
            let digits = name.dropFirst(Self.prefix.count).dropLast(isClosed ? Self.closed.count : 0)
            guard let number = Int64(digits, radix: 16) else { return nil }
            self.number = number
        }

        var name: String { Self.prefix + String(number, radix: 16) + (isClosed ? Self.closed : "") }
    }

    private func markers() -> [Marker] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.compactMap(Marker.init(name:))
    }

    /// Whether the only marker is that of a run with one of these numbers.
    private func isMarked(_ numbers: [Int64], isClosed: Bool) -> Bool {
        let markers = markers()
        guard markers.count == 1, let marker = markers.first, numbers.contains(marker.number) else { return false }
        // The record is closed before its marker, and open after it.
        return isClosed || !marker.isClosed
    }

    /// Leaves one marker. Renames one, so that a full disk does not prevent it.
    ///
    /// - Returns: 0, or the system's error number.
    private func mark(_ number: Int64, isClosed: Bool) -> Int32 {
        let marker = Marker(number: number, isClosed: isClosed)
        let present = markers()
        if !present.contains(marker) {
            if let first = present.first {
                guard rename(directory + "/" + first.name, directory + "/" + marker.name) == 0 else { return errno }
            } else {
                let descriptor = open(directory + "/" + marker.name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
                guard descriptor >= 0 else { return errno }
                close(descriptor)
            }
        }
        for other in markers() where other != marker { unlink(directory + "/" + other.name) }
        syncDirectory()
        return 0
    }

    /// Flushes the directory, so that its names are on the disk.
    private func syncDirectory() {
        let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        fsync(descriptor)
    }

    // MARK: Files

    /// The numbers of the database's file and of the marker in their file system, and the times of their births in
    /// nanoseconds since 1970, which copies do not have; 0 where unknown.
    private func identity() -> String {
        let markers = markers()
        let marker = markers.count == 1 ? markers.first.map { directory + "/" + $0.name } : nil
        return "\(Self.identity(of: database)) \(Self.identity(of: marker))"
    }

    private static func identity(of path: String?) -> String {
        var file = stat()
        guard let path, stat(path, &file) == 0 else { return "0 0" }
        return "\(file.st_ino) \(FileBirth.time(of: path) ?? 0)"
    }

    /// A value that changes when anything writes to the database or replaces it; nil if its log is not empty.
    private func fingerprint() -> String? {
        var log = stat()
        guard stat(database + "-wal", &log) != 0 || log.st_size == 0 else { return nil }
        var file = stat()
        guard stat(database, &file) == 0 else { return nil }
        #if canImport(Darwin)
        let time = file.st_mtimespec
        #else
        let time = file.st_mtim
        #endif
        return "\(identity()) \(file.st_size) \(time.tv_sec) \(time.tv_nsec)"
    }

    /// - Returns: 0, or the system's error number.
    private func write(_ text: String) -> Int32 {
        let run = numbers.isEmpty ? "" : numbers.reduce("run") { "\($0) \($1)" } + "\n"
        var bytes = Array("\(Self.title)\n\(text)\n\(run)".utf8)
        guard bytes.count <= Self.bytes else { return EINVAL }
        bytes += [UInt8](repeating: 0x0A, count: Self.bytes - bytes.count)
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else { return errno == 0 ? EIO : errno }
        guard fsync(descriptor) == 0 else { return errno }
        // The name may be new.
        syncDirectory()
        return 0
    }
}
