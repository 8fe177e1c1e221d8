// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Logging
import Testing

@testable import HermesServer

/// The answers of `/healthz` and `/readyz` of a running server.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReadinessTests {
    @Test func `whoever asks too often cannot make a ready server look broken`() async throws {
        try await withServer { server in
            func many(_ path: String) -> String {
                String(repeating: HTTPPortTests.get(path), count: 60) + HTTPPortTests.get(path, "Connection: close\r\n")
            }
            var answers: [Int] = []
            while !answers.contains(429), answers.count < 5000 {
                answers += try await HTTPPortTests.answers(server, many("/nothing"))
            }
            #expect(answers.contains(429))
            for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
                #expect(try await HTTPProbe.get(path, port: server.port("http")) == (200, text))
                // Even a large number of checks does not make a check fail.
                for _ in 0..<10 {
                    answers = try await HTTPPortTests.answers(server, many(path))
                    #expect(Set(answers) == [200], "\(path)")
                }
                #expect(try await HTTPProbe.get(path, port: server.port("http")) == (200, text))
            }
        }
    }

    @Test func `a database whose file is gone is no readiness, and an error in the log`() async throws {
        try await withServer(store: .sqlite) { server in
            let path = server.dataDirectory + "/hermes.db"
            let port = server.port("http")
            let tail = try #require(try server.assembly().tail)
            #expect(try await HTTPProbe.get("/readyz", port: port) == (200, "ready\n"))
            try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            var answer = try await HTTPProbe.get("/readyz", port: port)
            while answer.status == 200 {
                try await Task.sleep(for: .milliseconds(50))
                answer = try await HTTPProbe.get("/readyz", port: port)
            }
            let problem = "the database file or its write-ahead log was deleted, moved or replaced"
            #expect(answer == (503, "store: \(problem)\n"))
            let lines = tail.lines(atLeast: .error, containing: "a file of the database was deleted", limit: 10)
            #expect(lines.count == 1 && lines.first?.fields.contains("stop the server") == true)
            try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
            while try await HTTPProbe.get("/readyz", port: port).status != 200 {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    @Test func `a write-ahead log that is gone is no readiness`() async throws {
        try await withServer(store: .sqlite) { server in
            let path = server.dataDirectory + "/hermes.db-wal"
            let port = server.port("http")
            #expect(try await HTTPProbe.get("/readyz", port: port) == (200, "ready\n"))
            try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            while try await HTTPProbe.get("/readyz", port: port).status == 200 {
                try await Task.sleep(for: .milliseconds(50))
            }
            try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
            while try await HTTPProbe.get("/readyz", port: port).status != 200 {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    @Test func `another file in the place of the database is noticed`() throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let file = DatabaseFile(try files.write("hermes.db", "1"))
        file.check(logger)
        #expect(file.problem == nil)
        // The file is written under another name and then renamed, so it is another file.
        try files.write("hermes.db", "2")
        file.check(logger)
        #expect(file.problem != nil)
        files.remove()
        file.check(logger)
        #expect(file.problem != nil)
    }
}
