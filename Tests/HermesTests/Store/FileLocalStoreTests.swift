// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOConcurrencyHelpers
import Testing

@testable import Hermes

@Suite struct FileLocalStoreTests {
    /// Runs the body with a path in a separate folder.
    static func withPath(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "/store-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder + "/client.log")
    }

    private static func size(_ path: String) throws -> Int { try Data(contentsOf: URL(filePath: path)).count }

    @Test func `what was written is there after the process has ended`() async throws {
        try await Self.withPath { path in
            let store = try FileLocalStore(path: path)
            try await store.write(
                [LocalChange(key: "a", value: [1]), LocalChange(key: "b", value: [2])],
                durably: true
            )
            try await store.write([LocalChange(key: "a", value: nil)], durably: false)
            // The copy is the state of the file if the app is killed at this moment.
            try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")
            let next = try FileLocalStore(path: path + ".killed")
            #expect(next.records() == [LocalRecord(key: "b", value: [2])])
            #expect(store.records() == next.records())
        }
    }

    @Test func `a torn end is dropped, and what is written then is whole`() async throws {
        try await Self.withPath { path in
            let whole = RecordLogTests.file(RecordLogTests.changes)
            try Data(whole.dropLast(3)).write(to: URL(filePath: path))
            do {
                let store = try FileLocalStore(path: path)
                try await store.write([LocalChange(key: "d", value: [4])], durably: true)
            }
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            #expect(try FileLocalStore(path: path + ".copy").records().map(\.key) == ["b", "c", "d"])
        }
    }

    @Test func `a file that is none is put aside`() async throws {
        try await Self.withPath { path in
            try Data("not a store at all".utf8).write(to: URL(filePath: path))
            let store = try FileLocalStore(path: path)
            #expect(store.records().isEmpty && store.damagedFrames == 1)
            #expect(FileManager.default.fileExists(atPath: path + ".damaged"))
            try await store.write([LocalChange(key: "a", value: [1])], durably: true)
        }
    }

    @Test func `the file stays small however often a record changes`() async throws {
        try await Self.withPath { path in
            let store = try FileLocalStore(path: path)
            for number in 0..<300 {
                let value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1000)
                try await store.write([LocalChange(key: "k\(number % 3)", value: value)], durably: false)
            }
            #expect(try Self.size(path) < 80_000)
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            let records = try FileLocalStore(path: path + ".copy").records()
            #expect(records.map(\.key).sorted() == ["k0", "k1", "k2"])
            #expect(records.allSatisfy { $0.value.count == 1000 && $0.value[0] >= UInt8(297 - 256) })
        }
    }

    @Test func `a full store refuses more, and takes removals`() async throws {
        try await Self.withPath { path in
            let store = try FileLocalStore(path: path, maxBytes: 1000)
            try await store.write([LocalChange(key: "a", value: [UInt8](repeating: 0, count: 900))], durably: false)
            let error = await #expect(throws: HermesClientError.self) {
                try await store.write([LocalChange(key: "b", value: [UInt8](repeating: 0, count: 200))], durably: false)
            }
            #expect(error?.code == .storeFull)
            try await store.write([LocalChange(key: "a", value: nil)], durably: false)
            try await store.write([LocalChange(key: "b", value: [1])], durably: false)
            #expect(store.records().map(\.key) == ["b"])
        }
    }

    @Test func `a file is for one store at a time`() async throws {
        try await Self.withPath { path in
            let store = try FileLocalStore(path: path)
            let error = #expect(throws: HermesClientError.self) { try FileLocalStore(path: path) }
            #expect(error?.code == .storeFailed)
            #expect(store.records().isEmpty)
        }
    }

    @Test func `what could not be brought to the disk is not there at the next start, and the next write is`()
        async throws
    {
        try await Self.withPath { path in
            let isFailing = NIOLockedValueBox(false)
            let store = try FileLocalStore(path: path) { descriptor, path in
                if isFailing.withLockedValue({ $0 }) { throw HermesClientError(.storeFailed, "no disk") }
                try LogFile.synchronize(descriptor, path)
            }
            try await store.write([LocalChange(key: "a", value: [1])], durably: true)
            isFailing.withLockedValue { $0 = true }
            for _ in 1...2 {
                await #expect(throws: HermesClientError.self) {
                    try await store.write([LocalChange(key: "refused", value: [2])], durably: true)
                }
                #expect(store.records().map(\.key) == ["a"])
                try? FileManager.default.removeItem(atPath: path + ".copy")
                try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
                #expect(try FileLocalStore(path: path + ".copy").records().map(\.key) == ["a"])
            }
            isFailing.withLockedValue { $0 = false }
            try await store.write([LocalChange(key: "b", value: [3])], durably: true)
            try FileManager.default.removeItem(atPath: path + ".copy")
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            #expect(try FileLocalStore(path: path + ".copy").records().map(\.key) == ["a", "b"])
        }
    }

    @Test func `a change that fails again after a rewrite is not there at the next start`() async throws {
        try await Self.withPath { path in
            let isFailing = NIOLockedValueBox(false)
            // The flush fails for the file itself, but succeeds for its rewrite.
            let store = try FileLocalStore(path: path) { descriptor, flushed in
                guard flushed != path || !isFailing.withLockedValue({ $0 }) else {
                    throw HermesClientError(.storeFailed, "no disk")
                }
                try LogFile.synchronize(descriptor, flushed)
            }
            // These writes make the file longer than its rewrite.
            for number in 0..<50 {
                try await store.write([LocalChange(key: "a", value: [UInt8(number)])], durably: false)
            }
            isFailing.withLockedValue { $0 = true }
            for _ in 1...2 {
                await #expect(throws: HermesClientError.self) {
                    try await store.write([LocalChange(key: "refused", value: [2])], durably: true)
                }
            }
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            #expect(try FileLocalStore(path: path + ".copy").records() == [LocalRecord(key: "a", value: [49])])
            isFailing.withLockedValue { $0 = false }
            try await store.write([LocalChange(key: "b", value: [3])], durably: true)
            #expect(store.records().map(\.key) == ["a", "b"])
        }
    }

    @Test func `a file that is replaced before its lock is opened again`() async throws {
        try await Self.withPath { path in
            try Data("old".utf8).write(to: URL(filePath: path))
            try Data("new".utf8).write(to: URL(filePath: path + ".new"))
            var opened = 0
            let descriptor = try LogFile.open(path, O_RDWR | O_CREAT) {
                opened += 1
                // At the second try, there is nothing to rename.
                _ = rename(path + ".new", path)
            }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            #expect(try handle.readToEnd() == Data("new".utf8))
            #expect(opened == 2)
        }
    }

    @Test func `a file that is replaced at each try is an error`() async throws {
        try await Self.withPath { path in
            let error = #expect(throws: HermesClientError.self) {
                try LogFile.open(path, O_RDWR | O_CREAT) { _ = unlink(path) }
            }
            #expect(error?.code == .storeFailed)
        }
    }

    @Test func `a file of version 1 keeps its records and gets a salt`() async throws {
        try await Self.withPath { path in
            try Data(RecordLogTests.file(RecordLogTests.changes, salt: nil)).write(to: URL(filePath: path))
            let store = try FileLocalStore(path: path)
            #expect(store.records().map(\.key) == ["b", "c"])
            let bytes = try Data(contentsOf: URL(filePath: path))
            #expect(RecordLog.read(Array(bytes))?.salt != nil)
            try await store.write([LocalChange(key: "d", value: [4])], durably: true)
            try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            #expect(try FileLocalStore(path: path + ".copy").records().map(\.key) == ["b", "c", "d"])
        }
    }

    @Test func `a file of version 1 that cannot be rewritten stays one, and is written on`() async throws {
        try await Self.withPath { path in
            try Data(RecordLogTests.file(RecordLogTests.changes, salt: nil)).write(to: URL(filePath: path))
            let store = try FileLocalStore(path: path) { _, flushed in
                if flushed != path { throw HermesClientError(.storeFailed, "no disk") }
            }
            try await store.write([LocalChange(key: "d", value: [4])], durably: true)
            let contents = RecordLog.read(Array(try Data(contentsOf: URL(filePath: path))))
            #expect(contents != nil)
            #expect(contents?.salt == nil)
            #expect(contents?.table.records.map(\.key) == ["b", "c", "d"])
        }
    }

    @Test func `a folder that is not there is an error that names it`() {
        let error = #expect(throws: HermesClientError.self) { try FileLocalStore(path: "/nowhere/at/all/client.log") }
        #expect(error?.message.contains("/nowhere/at/all/client.log") == true)
    }

    @Test func `writes of many at once are carried out in order`() async throws {
        try await Self.withPath { path in
            let store = try FileLocalStore(path: path)
            for number in 0..<200 {
                store.write([LocalChange(key: "k", value: [UInt8(number)])], durably: number % 7 == 0) { _ in }
            }
            try await store.write([LocalChange(key: "end", value: [])], durably: true)
            #expect(store.records().first == LocalRecord(key: "k", value: [199]))
        }
    }
}
