// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Why a server could not start or had to stop: a message for the person who started it, and the exit code.
public struct ServerFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// Exit codes, by sysexits.h where that has a fitting one. See `docs/operations.md`.
    public enum ExitCode: Int32, Sendable, CaseIterable {
        /// The database is damaged (EX_DATAERR).
        case damagedData = 65
        /// An address cannot be listened on, mostly because another program does (EX_UNAVAILABLE).
        case addressUnavailable = 69
        /// A bug (EX_SOFTWARE).
        case internalError = 70
        /// The data directory cannot be created or written (EX_CANTCREAT).
        case dataNotWritable = 73
        /// The disk is full or does not work (EX_IOERR).
        case diskFailed = 74
        /// Another process uses the data directory (EX_TEMPFAIL).
        case dataInUse = 75
        /// The database is of a newer version or of another program (EX_PROTOCOL).
        case foreignData = 76
        /// The configuration is wrong (EX_CONFIG).
        case badConfiguration = 78
    }

    /// What the process should exit with.
    public let exitCode: ExitCode
    /// What happened and what can be done about it.
    public let message: String

    /// A failure with its exit code.
    public init(_ exitCode: ExitCode, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
