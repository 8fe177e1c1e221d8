// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// Reports failures of commands.
enum Report {
    /// Writes `hermes: …` to standard error.
    /// - Returns: the error to throw, so that the process ends with the failure's exit code.
    static func failure(_ failure: ServerFailure) -> ExitCode {
        self.failure(failure.message, code: failure.exitCode.rawValue)
    }

    /// Writes `hermes: …` to standard error, for a failure that is not a ServerFailure.
    static func failure(_ message: String, code: Int32 = 1) -> ExitCode {
        note(message)
        return ExitCode(code)
    }

    /// Writes `hermes: …` to standard error, for a message that does not report a failure.
    static func note(_ message: String) {
        // Without standard error, the message is lost.
        try? FileHandle.standardError.write(contentsOf: Data("hermes: \(message)\n".utf8))
    }
}
