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
    ///   - change: a description of the change that the command has made; nil if it has changed nothing. If the text
    ///     cannot be printed later, the description also says how to undo the change. The description is reported if
    ///     the printing fails.
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

    /// Prints the change that a command has made.
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
