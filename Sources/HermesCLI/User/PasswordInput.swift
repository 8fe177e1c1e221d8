// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// Reads a password from a file, from a pipe, or from the terminal without showing it. Passwords are never read from
/// the command line.
enum PasswordInput {
    /// - Parameters:
    ///   - file: the file whose first line is the password; nil to read from standard input.
    ///   - isNew: whether to ask twice at a terminal, because the password is new.
    /// - Throws: `ExitCode` after the reason was written to standard error.
    static func read(file: String?, isNew: Bool) throws -> String {
        if let file {
            do throws(UnreadableFile) {
                let data = try SecretFile.read(file)
                return String(String(decoding: data, as: UTF8.self).prefix { !$0.isNewline })
            } catch {
                throw Report.failure("the password file \"\(file)\" cannot be read: \(error)")
            }
        }
        guard isatty(STDIN_FILENO) == 1 else {
            guard let line = readLine() else { throw Report.failure("no password on standard input") }
            return line
        }
        let password = try ask("Password: ")
        if isNew, try ask("Once more: ") != password { throw Report.failure("the two passwords are not the same") }
        return password
    }

    private static func ask(_ prompt: String) throws -> String {
        do {
            return try Password.ask(prompt)
        } catch let failure as ClientFailure {
            throw Report.failure(failure.message)
        } catch is CancellationError {
            // The exit code with which a shell reports a command that SIGINT has ended.
            throw ExitCode(130)
        }
    }
}
