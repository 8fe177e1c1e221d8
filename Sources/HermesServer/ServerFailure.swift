// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reason why a server could not start or had to stop: a message for the person who started it, and the exit code.
public struct ServerFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// Exit codes. They are those of sysexits.h where it has a suitable code. See `docs/operations.md`.
    public enum ExitCode: Int32, Sendable, CaseIterable {
        /// The database is damaged (EX_DATAERR).
        case damagedData = 65
        /// A listener cannot open its address, usually because another program uses it (EX_UNAVAILABLE).
        case addressUnavailable = 69
        /// A bug in the server (EX_SOFTWARE).
        case internalError = 70
        /// The data directory cannot be created or written (EX_CANTCREAT).
        case dataNotWritable = 73
        /// The disk is full or fails (EX_IOERR).
        case diskFailed = 74
        /// Another process uses the data directory (EX_TEMPFAIL).
        case dataInUse = 75
        /// The database belongs to a newer version or another program (EX_PROTOCOL).
        case foreignData = 76
        /// The configuration is wrong (EX_CONFIG).
        case badConfiguration = 78
    }

    /// The exit code of the process.
    public let exitCode: ExitCode
    /// The problem and its remedy.
    public let message: String

    /// Creates a failure with its exit code.
    public init(_ exitCode: ExitCode, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
