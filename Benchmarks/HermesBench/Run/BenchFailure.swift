// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The reason why a benchmark could not run, or the error that it found, with an exit code. The code is 1 or a code
/// from sysexits.h.
struct BenchFailure: Error, CustomStringConvertible {
    let message: String
    let exitCode: ExitCode

    init(_ message: String, exitCode: ExitCode = .failure) {
        self.message = message
        self.exitCode = exitCode
    }

    /// Describes an error of the client.
    init(_ error: HermesClientError, server: ServerAddress) {
        switch error.code {
        case .cannotConnect: self.init("\(error.message); is the server running?", exitCode: ExitCode(69))
        case .wrongCredentials:
            let advice = "accounts of another server? remove the --accounts file"
            self.init("\(server.host):\(server.port): \(error.message); \(advice)", exitCode: ExitCode(77))
        default: self.init("\(server.host):\(server.port): \(error.message)")
        }
    }

    var description: String { message }

    /// Writes a line to stderr, without buffering. Control characters are removed, because the text may come from a
    /// server.
    static func tell(_ text: String) {
        let text = String(
            text.map { $0.unicodeScalars.contains { $0.properties.generalCategory == .control } ? " " : $0 }
        )
        FileHandle.standardError.write(Data("hermes-bench: \(text)\n".utf8))
    }
}

/// Runs a benchmark. Reports a failure on stderr and turns the failure into an exit code.
func reportingFailures(
    server: ServerAddress,
    _ body: nonisolated(nonsending) () async throws -> Void
) async throws {
    do {
        try await body()
    } catch let failure as BenchFailure {
        BenchFailure.tell(failure.message)
        throw failure.exitCode
    } catch let error as HermesClientError {
        let failure = BenchFailure(error, server: server)
        BenchFailure.tell(failure.message)
        throw failure.exitCode
    } catch is CancellationError {
        throw ExitCode(130)
    }
}
