// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ChildProcessTests {
    #if canImport(Glibc)
    @Test
    func `a program gets no descriptors of other tests, and ends with its own output`() throws {
        let other = Pipe()
        let output = Pipe()
        let process = try ChildProcess(
            "/bin/sh",
            // The shell keeps running, because another command follows.
            ["-c", "ls /proc/$$/fd; :"],
            output: output.fileHandleForWriting.fileDescriptor
        )
        try output.fileHandleForWriting.close()
        let listed = try #require(try output.fileHandleForReading.readToEnd())
        #expect(process.waitUntilExit() == 0)
        #expect(process.waitUntilExit() == -1)
        let descriptors = String(decoding: listed, as: UTF8.self).split(separator: "\n").compactMap { Int32($0) }
        #expect(descriptors.contains(1) && descriptors.allSatisfy { $0 <= 2 })
        withExtendedLifetime(other) {}
    }
    #endif

    @Test func `a program that is not there, or fails, is an error`() {
        #expect(throws: ChildProcess.Failed.self) { try ChildProcess.run("/not/there", []) }
        #expect(throws: ChildProcess.Failed.self) { try ChildProcess.run("/bin/sh", ["-c", "exit 3"]) }
    }
}
