// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
internal import Logging
import Synchronization

/// Rows that hold what no version of Hermes writes. They are left out and told, each once, and never deleted for it:
/// somebody may be able to read them still.
///
/// State: a `Mutex` around what was told.
package final class Damage: Sendable {
    /// So many are told apart; beyond that they are counted again and again.
    private static let maxKnown = 10_000

    private let known = Mutex<Set<String>>([])
    private let logger: Logger
    private let tell: @Sendable () -> Void

    init(logger: Logger, tell: @escaping @Sendable () -> Void) {
        self.logger = logger
        self.tell = tell
    }

    /// - Parameter row: which one, without its content.
    func found(_ row: String) {
        let isNew = known.withLock { known in
            guard known.count < Self.maxKnown else { return !known.contains(row) }
            return known.insert(row).inserted
        }
        guard isNew else { return }
        logger.error("a damaged row is left out", metadata: ["row": "\(row)"])
        tell()
    }

    /// Runs what reads one row; nil if that is damaged.
    func skipping<Value>(_ row: @autoclosure () -> String, _ read: () throws -> Value) throws -> Value? {
        do {
            return try read()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            found(row())
            return nil
        }
    }

    /// What is told about an operation that needs such a row.
    static let refusal = HermesError(
        .internalError,
        "What this needs is damaged in the server's database; nothing was stored. The operator finds it in the log."
    )
}
