// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Logging
import Testing

@testable import HermesServer

@Suite(.timeLimit(.minutes(1))) struct AccessFilesTests {
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
        try await Task.sleep(for: AccessFiles.interval)
        try files.write("rules", "deny all write b\n\n")
        while access.access.current.allows(.publish, "b", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(access.access.current.allows(.publish, "a", for: anyone))
        watching.cancel()
        try await watching.value
    }

    @Test func `a rule file that is being written is left alone`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let path = try files.write("rules", "deny all write a\n")
        let access = try AccessFiles(AccessSettings(rulesPath: path), logger: logger)
        let watching = Task { try await access.run() }
        // As a shell does: it empties the file before the program that writes it has begun.
        try files.write("rules", "")
        try await Task.sleep(for: AccessFiles.interval * 3)
        #expect(!access.access.current.allows(.publish, "a", for: anyone))
        // It grows line by line.
        var text = ""
        for number in 1...20 {
            text += "deny all write b\(number)\n"
            try files.write("rules", text)
            #expect(!access.access.current.allows(.publish, "a", for: anyone))
            try await Task.sleep(for: AccessFiles.interval / 10)
        }
        while access.access.current.allows(.publish, "b20", for: anyone) {
            try await Task.sleep(for: .milliseconds(10))
        }
        // Whoever wants no rules says so.
        try files.write("rules", "")
        access.reload()
        #expect(access.access.current.allows(.publish, "b20", for: anyone))
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
