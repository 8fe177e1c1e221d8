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

/// The data directory's record of its last run: whether the run closed the database, the machine's boot id at that
/// time, and the run's number. The record is a short file next to the database. It is written in place, so that a
/// full disk does not prevent an update. Only the holder of the ``DirectoryLock`` touches it.
///
/// The record says "closed" only after the database was closed. It says "open" again before anything is written. A
/// record that cannot be understood, or that does not match the database, does not count as closed.
///
/// Each run has a random number, which is also stored in the database. A database with a different number is an earlier
/// copy, even if its file has the same inode as the file that it replaced.
///
/// A copy of the whole directory has a record of its own, which matches the copied database. If the files of the copy
/// replaced the present ones, the copy is recognized by the creation times of its files. If the copy was written into
/// the present files, it is recognized by the marker. The marker is an empty file. Its name contains the run's number
/// and changes with each start and each stop. So the copy adds a marker with another name. The directory then has two
/// markers, unless somebody removes the present one.
struct RunRecord {
    /// The end of the last run.
    enum Ending: Sendable, Hashable {
        /// The database was closed and is unchanged.
        case closed
        /// The database was not closed, or there is no record that can be understood.
        ///
        /// - Parameter bootID: the boot id when the run began; nil if it is unknown.
        case unclosed(bootID: String?)
        /// The database is not the file that the record describes, or another program has changed this file. In both
        /// cases the database may be an earlier copy.
        case replaced

        /// Whether commits that clients have seen may be missing.
        ///
        /// - Parameter current: the present boot id; nil if it is unknown.
        func mayHaveLost(bootID current: String?) -> Bool {
            switch self {
            case .closed: false
            case .unclosed(let bootID): bootID == nil || bootID != current
            case .replaced: true
            }
        }
    }

    /// The last run, as the record describes it.
    struct LastRun: Sendable {
        var ending: Ending
        /// The number of the last run. After an interrupted start, the number of that start follows. Empty if the
        /// number is unknown, because there was no record, or because an earlier version wrote the record.
        var numbers: [Int64] = []

        /// Whether the last run began with this database file and did not close it. If so, the database may have no
        /// tables yet.
        ///
        /// - Parameter current: the present boot id; nil where the system has none.
        func hasBegunHere(bootID current: String?) -> Bool {
            guard case .unclosed(let bootID) = ending else { return false }
            return bootID != nil || current == nil
        }

        /// Whether commits that clients have seen may be missing.
        ///
        /// - Parameters:
        ///   - current: the present boot id; nil if it is unknown.
        ///   - number: the number in the present database.
        func mayHaveLost(bootID current: String?, number: Int64) -> Bool {
            ending.mayHaveLost(bootID: current) || isReplaced(number: number)
        }

        /// Whether the present database may be an earlier copy. This does not depend on how durable the commits were.
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
    /// The run numbers that the present database may have.
    private var numbers: [Int64] = []

    /// - Parameter bootID: the present boot id.
    init(directory: String, database: String, bootID: String? = RunRecord.bootID) {
        self.bootID = bootID
        self.directory = directory
        path = directory + "/" + Self.fileName
        self.database = database
    }

    /// The boot id, which changes each time the machine starts; nil where the system has none.
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

    /// Returns the last run, according to the record and the file of the present database.
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
        // Without this check, a copy of a running server's files would look like the files of a killed server.
        if state.hasPrefix("open "), state != "open \(identity())" { return .replaced }
        return .unclosed(bootID: boot.isEmpty ? nil : boot)
    }

    /// Records that the database is open. Until it is closed, it does not count as reliable.
    ///
    /// - Parameters:
    ///   - bootID: the boot id to record; commits may be lost when this boot ends.
    ///   - numbers: the run numbers that the database may have; empty if they are unknown.
    mutating func markOpen(bootID: String?, numbers: [Int64]) throws(StoreOpenError) {
        self.numbers = numbers
        var failure: Int32 = 0
        if let number = numbers.first { failure = mark(number, isClosed: false) }
        if failure == 0 { failure = write("boot \(bootID ?? "")\nopen \(identity())") }
        // The database is about to get the new number.
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

    /// An empty file next to the record. There is exactly one, unless an earlier copy was written into the directory.
    private struct Marker: Equatable {
        let number: Int64
        let isClosed: Bool

        private static let prefix = fileName + "-"
        private static let closed = "-closed"

        init(number: Int64, isClosed: Bool) {
            self.number = number
            self.isClosed = isClosed
        }

        /// - Parameter name: a file's name. The result is nil if it is not the name of a marker.
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

    /// Whether there is exactly one marker, and it belongs to a run with one of these numbers.
    private func isMarked(_ numbers: [Int64], isClosed: Bool) -> Bool {
        let markers = markers()
        guard markers.count == 1, let marker = markers.first, numbers.contains(marker.number) else { return false }
        // A stop closes the record before the marker, and a start opens the marker before the record. So an open record
        // must have an open marker.
        return isClosed || !marker.isClosed
    }

    /// Leaves only the marker for this number and state. Renames an existing marker, so that a full disk does not
    /// prevent the change.
    ///
    /// - Returns: 0, or the system's error number.
    private func mark(_ number: Int64, isClosed: Bool) -> Int32 {
        let marker = Marker(number: number, isClosed: isClosed)
        let present = markers()
        if !present.contains(marker) {
            if let first = present.first {
                guard rename(directory + "/" + first.name, directory + "/" + marker.name) == 0 else { return errno }
            } else {
                let name = directory + "/" + marker.name
                let descriptor = DirectoryOwner.openFile(name, in: directory, O_WRONLY | O_CLOEXEC)
                guard descriptor >= 0 else { return errno }
                close(descriptor)
            }
        }
        for other in markers() where other != marker { unlink(directory + "/" + other.name) }
        DirectoryFlush.flush(directory)
        return 0
    }

    // MARK: Files

    /// The inode numbers and the creation times (in nanoseconds since 1970) of the database file and of the marker; 0
    /// stands for an unknown value. Copies of these files have other values.
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

    /// A value that changes when anything writes to the database or replaces it; nil if the database's log is not
    /// empty.
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
        let descriptor = DirectoryOwner.openFile(path, in: directory, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else { return errno == 0 ? EIO : errno }
        guard fsync(descriptor) == 0 else { return errno }
        // The record's name may be new in the directory.
        DirectoryFlush.flush(directory)
        return 0
    }
}
