// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesTestKit
import Testing

@testable import HermesCLI

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct PasswordTests {
    @Test func `a prompt for a password ends when its task is cancelled`() async throws {
        let pipe = Pipe()
        let input = try StandardInput(descriptor: pipe.fileHandleForReading.fileDescriptor)
        let asking = Task { try await Password.ask("", from: input) }  // Cancelled below.
        // By then, the prompt waits for a byte.
        try await Task.sleep(for: .milliseconds(20))
        asking.cancel()
        await #expect(throws: CancellationError.self) { try await asking.value }
        try pipe.fileHandleForWriting.close()
        try pipe.fileHandleForReading.close()
    }

    @Test func `a prompt reads its own line alone`() async throws {
        let pipe = Pipe()
        let input = try StandardInput(descriptor: pipe.fileHandleForReading.fileDescriptor)
        try pipe.fileHandleForWriting.write(contentsOf: Data("secret\nagain\rhello".utf8))
        #expect(try await Password.ask("", from: input) == "secret")
        #expect(try await Password.ask("", from: input) == "again")
        #expect(await input.read() == Array("hello".utf8))
        try pipe.fileHandleForWriting.close()
        let failure = await #expect(throws: ClientFailure.self) { try await Password.ask("", from: input) }
        #expect(failure?.message == "no password was given")
        try pipe.fileHandleForReading.close()
    }

    @Test func `the file with a password may be a pipe`() throws {
        let path = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try #require(mkfifo(path, 0o600) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        Thread.detachNewThread {
            guard let pipe = FileHandle(forWritingAtPath: path) else { return }
            try? pipe.write(contentsOf: Data("secret\nrest\n".utf8))
            try? pipe.close()
        }
        #expect(try PasswordInput.read(file: path, isNew: true) == "secret")
    }

    @Test func `a file that cannot be read is told with the system's reason`() async throws {
        let directory = NSTemporaryDirectory()
        let missing = directory + "/h-\(UUID().uuidString.prefix(8))"
        #expect(throws: UnreadableFile(number: ENOENT)) { try SecretFile.read(missing) }
        #expect(throws: UnreadableFile(number: EISDIR)) { try SecretFile.read(directory) }
        let failure = await #expect(throws: ClientFailure.self) {
            try await Password.get(file: missing, prompt: "", confirms: false)
        }
        #expect(failure?.message == "--password-file \(missing) cannot be read: No such file or directory")
        let key = #expect(throws: ClientFailure.self) { try APIKeyOptions.parse(["--key-file", directory]).read() }
        #expect(key?.message == "--key-file \(directory) cannot be read: Is a directory")
    }

    /// Returns the password that results from typed bytes.
    private static func typed(_ bytes: some Sequence<UInt8>) throws -> String? {
        var line = PasswordLine()
        for byte in bytes {
            if let password = try line.feed(byte) { return password }
        }
        return nil
    }

    @Test func `the keys edit the password or end the prompt`() throws {
        #expect(try Self.typed("secret".utf8) == nil)
        // The backspace key removes a whole character.
        #expect(try Self.typed("aé\u{7F}b\n".utf8) == "ab")
        #expect(try Self.typed("wrong\u{15}right\r".utf8) == "right")
        #expect(throws: CancellationError.self) { try Self.typed("a\u{03}".utf8) }
        #expect(throws: ClientFailure.self) { try Self.typed("\u{04}".utf8) }
        // A password that is too long is not cut to a valid password.
        #expect(try Self.typed((String(repeating: "x", count: 300) + "\n").utf8)?.count == 257)
    }
}
