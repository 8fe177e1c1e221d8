// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Prints the results of commands to stdout, and reports results that cannot be printed.
enum CommandOutput {
    /// The exit code if a result cannot be printed: EX_IOERR of sysexits.h.
    static let failed = ExitCode(74)

    /// Prints a text and a line end.
    ///
    /// - Parameters:
    ///   - change: what the command has changed and, if the text is lost for good, how to undo it. This is told if the
    ///     text cannot be printed. nil: the command has changed nothing.
    /// - Throws: `ExitCode`, after the reason was written to standard error.
    static func print(
        _ text: String,
        terminator: String = "\n",
        after change: String? = nil,
        to output: StandardOutput = StandardOutput()
    ) throws {
        do throws(OutputFailure) {
            try output.write(Array((text + terminator).utf8))
        } catch {
            guard let message = Self.message(error, after: change) else { throw ExitCode.failure }
            throw Report.failure(message.printable, code: failed.rawValue)
        }
    }

    /// Prints what a command has changed.
    ///
    /// - Throws: `ExitCode`, after the reason and the change were written to standard error.
    static func confirm(_ change: String) throws { try Self.print(change, after: change) }

    /// Returns the message about a text that was not printed; nil if none is needed, because the reader has closed the
    /// pipe itself and nothing was changed.
    static func message(_ failure: OutputFailure, after change: String?) -> String? {
        guard let change else { return failure.isClosed ? nil : failure.reason }
        return "\(failure.reason); \(change)"
    }
}
