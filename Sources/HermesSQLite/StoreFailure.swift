// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Translates SQLite's errors for the core.
enum StoreFailure {
    /// The error for a row with contents that no version of Hermes writes.
    static let damagedRow = DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row holds an impossible value")

    /// Whether a commit failed because of a damaged row. A commit violates a constraint only if a damaged row has the
    /// key of a new row.
    static func isDamage(_ error: DatabaseError) -> Bool {
        error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_CONSTRAINT
    }

    static func hermesError(_ error: any Error) -> HermesError {
        switch error {
        case let error as HermesError: error
        case is DamagedInbox: Damage.refusal
        case let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT:
            HermesError(.shuttingDown, "The operation was cancelled.", cause: error)
        case let error as DatabaseError:
            HermesError(
                .storageUnavailable,
                explanation(error.resultCode),
                retryAfter: .seconds(5),
                cause: error
            )
        case is CancellationError: HermesError(.shuttingDown, "The operation was cancelled.", cause: error)
        default: HermesError(.internalError, "The store failed in an unexpected way.", cause: error)
        }
    }

    private static func explanation(_ code: ResultCode) -> String {
        switch code {
        case .SQLITE_FULL:
            """
            The server's disk is full; nothing was stored. Free some space where the data directory is; the server \
            then continues by itself.
            """
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            """
            The server's data directory cannot be written to; nothing was stored. Check its permissions and how its disk \
            is mounted.
            """
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            "The server's database is damaged; nothing was stored. Stop the server and restore a backup."
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            "Another process has locked the server's database; nothing was stored. Stop that process."
        case .SQLITE_IOERR, .SQLITE_CANTOPEN:
            """
            The server's disk reported an error or is full; nothing was stored. Look into the system's log and check the \
            free space.
            """
        case .SQLITE_MISUSE:
            "The store is closed."
        default:
            "The server's database failed (SQLite code \(code.rawValue)); nothing was stored."
        }
    }
}
