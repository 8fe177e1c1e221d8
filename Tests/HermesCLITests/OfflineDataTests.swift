// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer
import HermesTestKit
import Synchronization
import Testing

@testable import HermesCLI

/// Commands on a data directory without a server.
@Suite("Commands without a server", .inTurns, .timeLimit(.minutes(2)))
struct OfflineDataTests {
    /// Runs a body with a path in a new directory. Nothing exists at the path.
    private static func withPath(_ body: (String) async throws -> Void) async throws {
        let parent = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: parent) }
        try await body(parent + "/data")
    }

    /// Creates a key, and returns the notes that the command line shows.
    private static func notes(
        _ key: String,
        arguments: [String],
        environment: [String: String] = [:]
    ) async throws
        -> [String]
    {
        let notes = Mutex<[String]>([])
        let response = try await HermesServer.administer(
            .createAPIKey(name: key, scopes: "all"),
            arguments: arguments,
            environment: environment,
            file: nil,
            note: { note in notes.withLock { $0.append(note) } }
        )
        guard case .apiKeyCreated = response else {
            Issue.record("\(response)")
            return []
        }
        return notes.withLock { $0 }
    }

    @Test func `a command does not create a database in a place that was misspelled`() async throws {
        try await Self.withPath { path in
            let commands = [
                ["user", "list"], ["user", "devices", "ann"], ["apikey", "list"], ["admin", "list"], ["stats"],
                ["invitation", "list"], ["backup", path + ".backup"],
            ]
            for command in commands + [["apikey", "create", "shop"], ["invitation", "create", "friends"]] {
                await #expect(throws: ExitCode(78), "\(command)") {
                    try await HermesCommand.run(command + ["--data", path])
                }
                #expect(!FileManager.default.fileExists(atPath: path), "\(command)")
            }
            // The directory exists, but contains no database.
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for command in commands {
                await #expect(throws: ExitCode(78), "\(command)") {
                    try await HermesCommand.run(command + ["--data", path])
                }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
            #expect(!FileManager.default.fileExists(atPath: path + ".backup"))
        }
    }

    @Test func `the refusal names the absolute path and the remedy`() async throws {
        try await Self.withPath { path in
            let failure = await #expect(throws: ServerFailure.self) {
                try await HermesServer.administer(
                    .listAPIKeys,
                    arguments: ["--data.directory", path],
                    environment: [:],
                    file: nil
                )
            }
            #expect(failure?.message.contains("/data/hermes.db, and no such directory") == true)
            #expect(failure?.message.contains("--data DIR") == true && failure?.exitCode == .badConfiguration)
        }
    }

    @Test func `all scopes are not given together with others`() async throws {
        try await Self.withPath { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let response = try await HermesServer.administer(
                .createAPIKey(name: "shop", scopes: "all,foo"),
                arguments: ["--data.directory", path],
                environment: [:],
                file: nil
            )
            guard case .failed(_, let message) = response else {
                Issue.record("\(response)")
                return
            }
            #expect(message.contains("stands alone"))
        }
    }

    @Test func `a command that prepares the first start says what it has created`() async throws {
        try await Self.withPath { path in
            let environment = ["HERMES_DATA_DIRECTORY": path]
            let first = try await Self.notes("first", arguments: [], environment: environment)
            #expect(first.count == 1 && first[0].contains("/data/hermes.db"))
            #expect(try await Self.notes("second", arguments: [], environment: environment) == [])
            #expect(try await Self.notes("third", arguments: ["--data.directory", path]) == [])
            try await HermesCommand.run(["backup", path + ".backup", "--data", path])
            #expect(FileManager.default.fileExists(atPath: path + ".backup"))
        }
        try await Self.withPath { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            #expect(try await Self.notes("shop", arguments: ["--data.directory", path]).count == 1)
        }
    }
}
