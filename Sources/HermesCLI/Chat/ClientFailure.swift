// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The failure of a client command. It has a message with the problem, the cause and the remedy, and an exit code.
/// Most exit codes are those of sysexits.h.
struct ClientFailure: Error, CustomStringConvertible {
    let message: String
    let exitCode: ExitCode

    init(_ message: String, exitCode: ExitCode = .failure) {
        self.message = message
        self.exitCode = exitCode
    }

    /// Describes an error of the client for the command line.
    init(_ error: HermesClientError, server: ServerAddress) {
        let place = "\(server.host):\(server.port)"
        if let remedy = Self.remedy(error.message) {
            let exitCode = error.code == .cannotConnect ? ExitCode(69) : .failure
            self.init("\(place): \(error.message); \(remedy)", exitCode: exitCode)
            return
        }
        switch error.code {
        case .cannotConnect:
            self.init("\(error.message); is the server running? (hermes serve)", exitCode: ExitCode(69))
        case .wrongCredentials:
            self.init("\(place): \(error.message); to create the account, add --register", exitCode: ExitCode(77))
        case .nameTaken:
            self.init("\(place): \(error.message); to log in instead, leave --register out", exitCode: ExitCode(77))
        case .replaced:
            self.init("\(error.message): another client logged in with the same --device", exitCode: ExitCode(77))
        default:
            self.init("\(place): \(error.message)")
        }
    }

    /// Returns advice if only one of client and server uses TLS; nil if the message is about something else.
    private static func remedy(_ message: String) -> String? {
        if message.contains(ServerMismatch.speaksNoTLS) { return "if so, use --no-tls" }
        return message.contains(ServerMismatch.speaksTLS) ? "use --tls" : nil
    }

    var description: String { message }
}

/// Runs a client command. Reports a failure on stderr and turns it into an exit code.
func reportingFailures(
    server: ServerAddress,
    _ body: nonisolated(nonsending) () async throws -> Void
) async throws {
    func end(_ failure: ClientFailure) -> ExitCode {
        StandardError.tell(failure.message)
        return failure.exitCode
    }
    do {
        try await body()
    } catch let error as ClientFailure {
        throw end(error)
    } catch let error as HermesClientError {
        throw end(ClientFailure(error, server: server))
    } catch let error as OutputFailure {
        // The reader has closed the pipe itself, so no message is needed.
        if error.isClosed { throw error.exitCode }
        throw end(ClientFailure("\(error)", exitCode: error.exitCode))
    } catch is CancellationError {
        throw ExitCode(130)
    }
}

/// Writes to stderr at once.
enum StandardError {
    static func write(_ text: String) {
        // Without standard error, the text is lost.
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }

    /// Writes a line without control characters, because its text may come from a server.
    static func tell(_ text: String, as speaker: String = "hermes") { write(line(text, as: speaker)) }

    static func line(_ text: String, as speaker: String) -> String { "\(speaker): \(text.printable)\n" }
}
