// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
internal import Logging
import Synchronization

/// Rows with contents that no version of Hermes writes. They are skipped, and each is reported once. They are never
/// deleted, because somebody may still be able to read them. But a sound row replaces a damaged row with the same key
/// (``FreshTables``), and the row of an inbox is rebuilt (``InboxRow``).
///
/// State: a `Mutex` around the reported rows, and one around the users whose inboxes have lost their rows.
package final class Damage: Sendable {
    /// The number of reported rows, and of lost inboxes, that are remembered. Any further row is reported again each
    /// time it is found.
    private static let maxKnown = 10_000

    private let known = Mutex<Set<String>>([])
    private let lostInboxes = Mutex<Set<UserID>>([])
    private let logger: Logger
    private let tell: @Sendable () -> Void

    init(logger: Logger, tell: @escaping @Sendable () -> Void) {
        self.logger = logger
        self.tell = tell
    }

    /// Reports a damaged row, unless it was already reported.
    ///
    /// - Parameter row: the row's name, without its content.
    func found(_ row: String) {
        let isNew = known.withLock { known in
            guard known.count < Self.maxKnown else { return !known.contains(row) }
            return known.insert(row).inserted
        }
        guard isNew else { return }
        logger.error("a damaged row is skipped", metadata: ["row": "\(row)"])
        tell()
    }

    /// Reports that the damaged row of an inbox cannot be rebuilt.
    func lost(inboxOf user: UserID) {
        found("inbox of user \(user.rawValue)")
        lostInboxes.withLock { if $0.count < Self.maxKnown { $0.insert(user) } }
    }

    /// Whether the damaged row of an inbox could not be rebuilt.
    func isLost(inboxOf user: UserID) -> Bool { lostInboxes.withLock { $0.contains(user) } }

    /// Reports that the damaged row of an inbox was rebuilt. Must be called only after the commit of the new row.
    func rebuilt(_ row: InboxRow.Rebuilt) {
        lostInboxes.withLock { _ = $0.remove(row.user) }
        let name = "inbox of user \(row.user.rawValue)"
        logger.error(
            "a damaged row was rebuilt",
            metadata: ["row": "\(name)", "was": "\(row.was)", "now": "\(row.now)"]
        )
        tell()
    }

    /// Reads one row. Returns nil if the row is damaged.
    func skipping<Value>(_ row: @autoclosure () -> String, _ read: () throws -> Value) throws -> Value? {
        do {
            return try read()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            found(row())
            return nil
        }
    }

    /// The error for an operation that needs a damaged row.
    static let refusal = HermesError(
        .internalError,
        "The request needs data that is damaged in the database; nothing was stored. The log has the details."
    )
}
