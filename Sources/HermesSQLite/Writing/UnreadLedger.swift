// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
import Synchronization

/// The bytes of each account's unread 1:1 messages in the inboxes of others. They are counted when the store is opened,
/// then updated by commits and purges.
///
/// State: a `Mutex` around a table, which is changed after each transaction.
final class UnreadLedger: Sendable {
    private let bytes: Mutex<[UserID: Int]>
    /// The entries in all inboxes when the store was opened.
    let lying: Holding

    /// - Parameter damage: gets the entries with an impossible weight, which count as 0 bytes.
    init(_ db: Database, damage: Damage) throws {
        var found: [UserID: Int] = [:]
        var lying = Holding()
        for table in FreshTables.inbox.both {
            let query = try PreparedStatement(
                db,
                """
                SELECT CASE WHEN source > 0 AND source <> user THEN source ELSE 0 END AS sender, \
                \(PreparedStatement.totalWeight), count(*), \(PreparedStatement.damagedWeights) FROM \(table) \
                GROUP BY sender
                """
            )
            try query.forEachRow { row in
                let bytes = row.amount(1, upTo: PreparedStatement.maxSum)
                let damaged = row.integer(3)
                if damaged > 0 { damage.found("\(damaged) weights in \(table) of sender \(row.integer(0))") }
                lying += Holding(entries: Int(row.integer(2)), bytes: bytes)
                if let sender = UserID(row.integer(0)) {
                    found[sender, default: 0] += bytes
                } else if row.integer(0) > 0 {
                    damage.found("entries in \(table) of sender \(row.integer(0))")
                }
            }
        }
        bytes = Mutex(found)
        self.lying = lying
    }

    subscript(_ user: UserID) -> Int { bytes.withLock { $0[user] ?? 0 } }

    /// - Parameter changes: the changes by a committed transaction.
    func apply(_ changes: [UserID: Int]) {
        guard !changes.isEmpty else { return }
        bytes.withLock { bytes in
            for (user, change) in changes {
                let now = bytes[user, default: 0] + change
                bytes[user] = now > 0 ? now : nil
            }
        }
    }
}
