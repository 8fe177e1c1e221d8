// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Gets passwords: from a file, from HERMES_PASSWORD, or from the terminal without echo.
enum Password {
    /// Returns the password from the first source that is available: the file, HERMES_PASSWORD, or the terminal.
    ///
    /// - Parameters:
    ///   - file: the file whose first line is the password; nil to use the other sources.
    ///   - prompt: the text that asks for the password at the terminal.
    ///   - confirms: whether to ask twice at the terminal, because the password is new.
    /// - Throws: ClientFailure; CancellationError if the task is cancelled or the user types Ctrl-C.
    static func get(file: String?, prompt: String, confirms: Bool) async throws -> String {
        if let file { return try read(file: file) }
        if let password = ProcessInfo.processInfo.environment["HERMES_PASSWORD"], !password.isEmpty { return password }
        guard isatty(STDIN_FILENO) == 1 else {
            throw ClientFailure(
                "the password is missing: without a terminal, give it in HERMES_PASSWORD or --password-file"
            )
        }
        let input = try StandardInput()
        let password = try await ask(prompt, from: input)
        guard confirms else { return password }
        let again = try await ask("Once more: ", from: input)
        guard again == password else { throw ClientFailure("the two passwords differ") }
        return password
    }

    private static func read(file: String) throws -> String {
        let data: Data
        do throws(UnreadableFile) {
            data = try SecretFile.read(file)
        } catch {
            throw ClientFailure("--password-file \(file) cannot be read: \(error)")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw ClientFailure("--password-file \(file) is not UTF-8")
        }
        let line = text.prefix { !$0.isNewline }
        guard !line.isEmpty else { throw ClientFailure("--password-file \(file): its first line is empty") }
        return String(line)
    }

    /// Asks at the terminal, with echo and signal keys switched off. Without signals, Ctrl-C cannot end the process
    /// before the echo is on again.
    static func ask(_ prompt: String) throws -> String {
        StandardError.write(prompt)
        return try TerminalMode.whileRaw {
            defer { StandardError.write("\n") }
            var line = PasswordLine()
            while true {
                var byte: UInt8 = 0
                let count = Foundation.read(STDIN_FILENO, &byte, 1)
                if count < 0, errno == EINTR { continue }
                guard count == 1 else { throw PasswordLine.missing }
                if let password = try line.feed(byte) { return password }
            }
        }
    }

    /// Asks at the terminal like `ask`, until the task is cancelled. Reads no byte after the password's line.
    ///
    /// - Throws: ClientFailure; CancellationError if the task is cancelled or the user types Ctrl-C.
    static func ask(_ prompt: String, from input: StandardInput) async throws -> String {
        StandardError.write(prompt)
        let restore = TerminalMode.makeRaw()
        defer {
            StandardError.write("\n")
            restore?()
        }
        var line = PasswordLine()
        while let byte = await input.read(upTo: 1)?.first {
            if let password = try line.feed(byte) { return password }
        }
        try Task.checkCancellation()
        throw PasswordLine.missing
    }
}

/// A password that is being typed at a terminal.
struct PasswordLine {
    private var bytes: [UInt8] = []

    /// The error of an input that ends before the password.
    static let missing = ClientFailure("no password was given")

    /// Handles a typed byte.
    ///
    /// - Returns: the password after the end of the line; nil until then.
    /// - Throws: CancellationError after Ctrl-C; ``missing`` after Ctrl-D in an empty line.
    mutating func feed(_ byte: UInt8) throws -> String? {
        switch byte {
        case 0x04 where bytes.isEmpty:  // Ctrl-D
            throw Self.missing
        case 0x03:  // Ctrl-C
            throw CancellationError()
        case 0x0A, 0x0D:
            return String(decoding: bytes, as: UTF8.self)
        case 0x7F, 0x08:
            while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
        case 0x15:  // Ctrl-U
            bytes = []
        default:
            // Keep one byte more than a password may have, so that a longer password is refused instead of cut.
            if bytes.count <= 256 { bytes.append(byte) }
        }
        return nil
    }
}
