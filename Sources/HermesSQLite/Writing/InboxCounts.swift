// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// The counts of an inbox's entries, in the columns `entries` and `bytes` of `inbox_head`. Each transaction that adds
/// or removes entries also writes the counts, so that no transaction counts the entries of a long inbox.
///
/// The counts can be too high after a sound entry has replaced a damaged one (``FreshTables``). When a purge finds
/// impossible counts, such as a count above 0 for an empty inbox, it counts the entries again.
enum InboxCounts {
    /// Writes the counts of all inboxes.
    static let countAllSQL = "UPDATE inbox_head SET (entries, bytes) = (\(countSQL(of: "inbox_head.user")))"

    private static let recountSQL = """
        UPDATE inbox_head SET (entries, bytes) = (\(countSQL(of: "?1"))) WHERE user = ?1 RETURNING entries, bytes
        """

    private static func countSQL(of user: String) -> String {
        let parts = FreshTables.inbox.both.map { table in
            "SELECT count(*) AS entries, \(PreparedStatement.totalWeight) AS bytes FROM \(table) WHERE user = \(user)"
        }
        return """
            SELECT sum(entries), CAST(min(sum(bytes), \(PreparedStatement.maxSum)) AS INTEGER) FROM \
            (\(parts.joined(separator: " UNION ALL ")))
            """
    }

    /// Counts the entries of an inbox and writes the counts.
    static func recount(_ user: UserID, in db: Database) throws -> Holding {
        let update = try PreparedStatement(db, recountSQL)
        update.bind(user, at: 1)
        return try update.first { $0.counts(0) ?? Holding() } ?? Holding()
    }
}

extension PreparedStatement {
    /// Returns the counts of an inbox from two columns, of which the first one is `column`; nil if a number is out of
    /// range.
    func counts(_ column: Int32) -> Holding? {
        guard let entries = soundAmount(column, upTo: Self.maxSum),
            let bytes = soundAmount(column + 1, upTo: Self.maxSum)
        else { return nil }
        return Holding(entries: entries, bytes: bytes)
    }
}
