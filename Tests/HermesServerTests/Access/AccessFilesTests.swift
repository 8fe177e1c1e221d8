// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import Logging
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct AccessFilesTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let anyone = ClientIdentity(clientID: "c")

    @Test func `rules are read at start and again, and stay if that fails`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        #expect(!access.access.current.allows(.publish, "a", for: anyone))
        try files.write("rules", "deny all write b\n")
        access.reload()
        #expect(access.access.current.allows(.publish, "a", for: anyone))
        #expect(!access.access.current.allows(.publish, "b", for: anyone))
        let generation = access.access.generation
        for text in ["deny everything", "deny all write #/a", String(repeating: "#", count: 1 << 21)] {
            try files.write("rules", text)
            access.reload()
        }
        files.remove()
        access.reload()
        #expect(access.access.generation == generation)
    }

    @Test func `a change of the rule file is noticed`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        let watching = Task { try await access.run() }
        try files.write("rules", "deny all write b\n\n")
        while access.access.current.allows(.publish, "b", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(access.access.current.allows(.publish, "a", for: anyone))
        watching.cancel()
        try await watching.value
    }

    private func stamp(_ second: Double, _ size: UInt64) -> FileStamp {
        FileStamp(modified: Date(timeIntervalSince1970: second), size: size, number: 1)
    }

    /// Returns the indices of the checks that find that the file must be read.
    private func due(_ watch: inout FileWatch, _ looks: [FileStamp?]) -> [Int] {
        looks.indices.filter { watch.isDue(looks[$0]) }
    }

    @Test func `a file is read once it has stayed the same, and an empty one is not`() {
        var watch = FileWatch(read: stamp(1, 9))
        // The file grows from check to check, and then stays the same. If it is invalid, it is not read again until it
        // changes.
        let growing = [(1, 9), (1, 9), (2, 3), (2, 5), (3, 7), (3, 7), (3, 7), (3, 7)].map { stamp($0, $1) }
        let grown = due(&watch, growing)
        #expect(grown == [5])
        let emptied = due(&watch, [stamp(4, 0), stamp(4, 0), stamp(4, 0), nil, nil])
        #expect(emptied.isEmpty)
        // The file that was read last is there again.
        let back = due(&watch, [stamp(1, 9), stamp(1, 9)])
        #expect(back.isEmpty)
    }

    @Test func `what was read when asked to is what changes are compared with`() {
        var watch = FileWatch(read: stamp(1, 9))
        // The file was emptied, and read because of SIGHUP.
        watch.read = stamp(2, 0)
        let back = due(&watch, [stamp(2, 0), stamp(1, 9), stamp(1, 9)])
        #expect(back == [2])
    }

    @Test func `an empty rule file is read when asked to, and the rules come back with the file`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        let watching = Task { try await access.run() }
        try files.write("rules", "")
        access.reload()
        #expect(access.access.current.allows(.publish, "a", for: anyone))
        try files.write("rules", "deny all write a\n")
        while access.access.current.allows(.publish, "a", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        watching.cancel()
        try await watching.value
    }

    @Test func `a change between the start and the watch is noticed`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        try files.write("rules", "deny all write longer\n")
        let watching = Task { try await access.run() }
        while access.access.current.allows(.publish, "longer", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        watching.cancel()
        try await watching.value
    }

    @Test func `a symbolic link that is switched to another file is noticed`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let first = try files.write("first", "deny all write a\n")
        let second = try files.write("second", "deny all write b\n")
        let folder = URL(fileURLWithPath: first).deletingLastPathComponent()
        let (link, next) = (folder.appending(path: "rules").path, folder.appending(path: "next").path)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: first)
        let access = try AccessFiles(AccessSettings(rulesPath: link), logger: logger)
        let watching = Task { try await access.run() }
        try FileManager.default.createSymbolicLink(atPath: next, withDestinationPath: second)
        try #require(rename(next, link) == 0)
        while access.access.current.allows(.publish, "b", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        watching.cancel()
        try await watching.value
    }

    @Test func `a pipe in the place of a file is refused, and nobody waits for its writer`() throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        try FileManager.default.removeItem(atPath: path)
        try #require(mkfifo(path, 0o600) == 0)
        access.reload()
        #expect(!access.access.current.allows(.publish, "a", for: anyone))
        let failure = #expect(throws: ServerFailure.self) {
            try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        }
        #expect(failure?.message.contains("it is a pipe") == true)
        let other = #expect(throws: ServerFailure.self) {
            try AccessFiles(AccessSettings(tokens: .init(keysPath: path)), logger: logger)
        }
        #expect(other?.message.contains("it is a pipe") == true)
    }

    @Test func `a file with an error stops the start, with the line`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "\nallow all read a\npermit all read b\n")
        let failure = #expect(throws: ServerFailure.self) {
            try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        }
        #expect(failure?.exitCode == .badConfiguration)
        #expect(failure?.message.contains("line 3") == true)
        let keys = try files.write("keys", "short")
        let other = #expect(throws: ServerFailure.self) {
            try AccessFiles(AccessSettings(tokens: .init(keysPath: keys)), logger: logger)
        }
        #expect(other?.message.contains("32 bytes") == true)
        #expect(throws: ServerFailure.self) {
            try AccessFiles(AccessSettings(rulesPath: "/does/not/exist"), logger: logger)
        }
    }
}
