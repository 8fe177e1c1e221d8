// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

// The members of `stat` belong to the first imported module. The order of the files determines which module that is.
#if canImport(CDispatch)
import CDispatch
#endif

@Suite("Whether commits may have been lost", .inTurns)
struct StoreMarkTests {
    private func open(
        _ directory: TemporaryDirectory,
        boot: String?,
        _ durability: SQLiteStore.Durability = .normal
    ) throws -> SQLiteStore {
        try SQLiteStore.open(
            directory: directory.path,
            durability: durability,
            settings: StoreSettings(),
            bootID: boot,
            logger: TemporaryDirectory.silent
        )
    }

    /// Copies the present state of the files.
    private func copy(_ directory: TemporaryDirectory) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory()
        for file in ["hermes.db", "hermes.db-wal", "hermes.run"] {
            let data = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/" + file))
            try data.write(to: URL(fileURLWithPath: copy.path + "/" + file))
        }
        return copy
    }

    /// Returns the files that a run in boot "a" leaves if it is not closed.
    ///
    /// - Parameter next: the number of an interrupted start after this run.
    private func killed(_ directory: TemporaryDirectory, next: [Int64] = []) throws -> TemporaryDirectory {
        let left = try copy(directory)
        var record = RunRecord(directory: left.path, database: left.database)
        try record.markOpen(bootID: "a", numbers: record.lastRun().numbers + next)
        return left
    }

    /// Returns the database that the first run has left, and the second run.
    private func openedAgain(_ directory: TemporaryDirectory) throws -> (copy: Data, second: SQLiteStore) {
        let first = try open(directory, boot: "a")
        try first.close()
        let copy = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        let second = try open(directory, boot: "a")
        #expect(second.epoch == first.epoch)
        return (copy, second)
    }

    @Test
    func `a store that was closed keeps its epoch, whatever happened to the machine since`() throws {
        let directory = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        try first.close()
        for boot in ["a", "b", nil] {
            let store = try open(directory, boot: boot)
            #expect(store.epoch == first.epoch, "\(boot ?? "unknown")")
            try store.close()
        }
    }

    @Test
    func `a killed process loses nothing: the epoch stays`() throws {
        let directory = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        #expect(try open(killed(directory), boot: "a").epoch == first.epoch)
    }

    @Test
    func `a copy of the files of a running server has a new epoch, also in the same boot`() throws {
        let directory = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        let restored = try copy(directory)
        let second = try open(restored, boot: "a")
        #expect(second.epoch != first.epoch)
        try second.close()
        #expect(try open(restored, boot: "a").epoch == second.epoch, "told once")
    }

    @Test(arguments: ["b", nil])
    func `after a power cut the epoch is a new one`(boot: String?) throws {
        let directory = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        let left = try killed(directory)
        let second = try open(left, boot: boot)
        #expect(second.epoch != first.epoch)
        try second.close()
        // The loss is reported only once.
        #expect(try open(left, boot: "c").epoch == second.epoch)
    }

    @Test
    func `an earlier copy in the place of the file has a new epoch, however it was made`() throws {
        let directory = try TemporaryDirectory()
        let (copy, second) = try openedAgain(directory)
        try second.close()
        try copy.write(to: URL(fileURLWithPath: directory.database))
        let third = try open(directory, boot: "a")
        #expect(third.epoch != second.epoch)
        try third.close()
        let alone = try TemporaryDirectory()
        try copy.write(to: URL(fileURLWithPath: alone.database))
        #expect(try open(alone, boot: "a").epoch != second.epoch)
    }

    @Test
    func `what was received with QoS 2 is forgotten in a copy, and kept after a power cut that lost nothing`() throws {
        let directory = try TemporaryDirectory()
        let world = SessionWorld(try open(directory, boot: "a", .full))
        let id = try world.open("c").id
        _ = try world.publish("1", to: [id], received: ReceivedMark(session: id, id: 7))
        #expect(try SessionWorld(open(killed(directory), boot: "b", .full)).open("c").received == [7])
        let copy = try killed(directory)
        var record = RunRecord(directory: copy.path, database: copy.database)
        try record.markOpen(bootID: "a", numbers: [1])
        #expect(try SessionWorld(open(copy, boot: "a", .full)).open("c").received == [])
    }

    @Test(arguments: [SQLiteStore.Durability.normal, .full])
    func `after a power cut the durability of the last run counts, not that of the present one`(
        _ last: SQLiteStore.Durability
    ) throws {
        let directory = try TemporaryDirectory()
        let world = SessionWorld(try open(directory, boot: "a", last))
        let id = try world.open("c").id
        _ = try world.publish("1", to: [id], received: ReceivedMark(session: id, id: 7))
        let present: SQLiteStore.Durability = last == .full ? .normal : .full
        let session = try SessionWorld(open(killed(directory), boot: "b", present)).open("c")
        #expect(session.received == (last == .full ? [7] : []))
    }

    @Test
    func `an earlier copy with the inode of a killed server's file has a new epoch`() throws {
        let directory = try TemporaryDirectory()
        let (copy, second) = try openedAgain(directory)
        let left = try killed(directory)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: left.database))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: copy)
        try file.close()
        try FileManager.default.removeItem(atPath: left.database + "-wal")
        #expect(try open(left, boot: "a").epoch != second.epoch)
    }

    enum Moment: CaseIterable, Sendable { case running, stopped }

    /// Copies a directory's files with their times into another directory. Like `cp -a`, it overwrites the content of
    /// existing files.
    private func copyFiles(of directory: TemporaryDirectory, to other: TemporaryDirectory) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !name.hasSuffix("-shm") {
            let (source, target) = (directory.path + "/" + name, other.path + "/" + name)
            let isThere = FileManager.default.fileExists(atPath: target)
            if !isThere { _ = FileManager.default.createFile(atPath: target, contents: nil) }
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: target))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: Data(contentsOf: URL(fileURLWithPath: source)))
            try file.close()
            var state = stat()
            #expect(stat(source, &state) == 0)
            #if canImport(Darwin)
            let times = [state.st_atimespec, state.st_mtimespec]
            #else
            let times = [state.st_atim, state.st_mtim]
            #endif
            #expect(utimensat(AT_FDCWD, target, times, 0) == 0)
        }
    }

    @Test(
        arguments: [
            (Moment.running, Moment.running), (.running, .stopped), (.stopped, .running), (.stopped, .stopped),
        ],
        [false, true]
    )
    func `a copy of the whole directory is recognized, when it was made and when it is put back`(
        _ moments: (made: Moment, restored: Moment),
        isMirrored: Bool
    ) throws {
        let (made, restored) = moments
        let directory = try TemporaryDirectory()
        let copy = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        if made == .running { try copyFiles(of: directory, to: copy) }
        try first.close()
        if made == .stopped { try copyFiles(of: directory, to: copy) }
        let second = try open(directory, boot: "a")
        #expect(second.epoch == first.epoch)
        let killed = try TemporaryDirectory()
        try copyFiles(of: directory, to: killed)
        try second.close()
        if restored == .running {
            // The present files get their state before the close again.
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
            where name.hasSuffix("-closed") {
                let path = directory.path + "/" + name
                try FileManager.default.moveItem(atPath: path, toPath: String(path.dropLast("-closed".count)))
            }
            try copyFiles(of: killed, to: directory)
            let record = RunRecord(directory: directory.path, database: directory.database)
            #expect(record.lastRun().ending == .unclosed(bootID: "a"))
        }
        if isMirrored {
            // This is what `rsync --delete` does.
            let copied = try FileManager.default.contentsOfDirectory(atPath: copy.path)
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !copied.contains(name)
            {
                try FileManager.default.removeItem(atPath: directory.path + "/" + name)
            }
        }
        try copyFiles(of: copy, to: directory)
        #expect(try open(directory, boot: "a").epoch != first.epoch)
    }

    @Test
    func `a copy made while the server ran is recognized after it was stopped, in the present files, too`() throws {
        let directory = try TemporaryDirectory()
        let copy = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        try copyFiles(of: directory, to: copy)
        try first.close()
        try copyFiles(of: copy, to: directory)
        #expect(try open(directory, boot: "a").epoch != first.epoch)
    }

    @Test(.enabled(if: FileBirth.time(of: NSTemporaryDirectory()) != nil))
    func `a file has a time of birth, which its copy has not, whatever its other times`() throws {
        let directory = try TemporaryDirectory()
        let copy = try TemporaryDirectory()
        try Data("x".utf8).write(to: URL(fileURLWithPath: directory.database))
        // The system's clock for files ticks every few milliseconds.
        Thread.sleep(forTimeInterval: 0.05)
        try copyFiles(of: directory, to: copy)
        let (one, other) = (FileBirth.time(of: directory.database), FileBirth.time(of: copy.database))
        #expect(one ?? 0 > 1_700_000_000_000_000_000)
        #expect(other ?? 0 > one ?? 0)
        #expect(FileBirth.time(of: directory.path + "/none") == nil)
    }

    @Test
    func `a start that was interrupted loses nothing, whether or not the database has its number`() throws {
        let directory = try TemporaryDirectory()
        let first = try open(directory, boot: "a")
        let before = try killed(directory, next: [7])
        #expect(RunRecord(directory: before.path, database: before.database).lastRun().numbers.last == 7)
        let second = try open(before, boot: "a")
        #expect(second.epoch == first.epoch)
        let after = try killed(before)
        var record = RunRecord(directory: after.path, database: after.database)
        #expect(record.lastRun().numbers == [7])
        try record.markOpen(bootID: "a", numbers: [1, 7])
        #expect(try open(after, boot: "a").epoch == first.epoch)
        // A different number stands for a different database.
        let other = try killed(before)
        record = RunRecord(directory: other.path, database: other.database)
        try record.markOpen(bootID: "a", numbers: [1, 2])
        #expect(try open(other, boot: "a").epoch != first.epoch)
    }

    @Test
    func `after a loss a kept session's places jump, so that no packet identifier is given twice`() throws {
        let directory = try TemporaryDirectory()
        let store = try open(directory, boot: "a")
        let world = SessionWorld(store)
        let id = try world.open("c").id
        #expect(try world.publish("1", to: [id], received: ReceivedMark(session: id, id: 7)) == [1])
        let after = SessionWorld(try open(killed(directory), boot: "b"))
        let session = try after.open("c")
        // A message that the client now publishes with identifier 7 is another message.
        #expect(session.received == [])
        #expect(session.queuedCount == 1)
        #expect(try after.publish("2", to: [id]) == [2 + UInt64(StoreMark.sessionJump)])
    }
}
