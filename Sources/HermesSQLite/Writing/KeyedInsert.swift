// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// Inserts rows that differ only in their key of two columns, such as the queue entries of one publication.
///
/// Starting and ending a statement takes longer than inserting a row, so one run inserts many rows.
final class KeyedInsert {
    struct SQL {
        /// One SQL text for each of ``sizes``.
        fileprivate let texts: [String]

        /// The text for one row.
        var single: String { texts[texts.count - 1] }

        /// - Parameters:
        ///   - key: the two columns of the key.
        ///   - columns: the columns that all rows share. Their parameters begin with number 1.
        init(into table: String, key: [String], columns: [String]) {
            let shared = columns.indices.map { "?\($0 + 1)" }
            texts = KeyedInsert.sizes.map { size in
                let rows = (0..<size).map { row in
                    let first = columns.count + key.count * row + 1
                    let own = key.indices.map { "?\(first + $0)" }
                    return "(\((own + shared).joined(separator: ", ")))"
                }
                // An error fails the whole transaction or savepoint. So SQLite need not remember how to undo a single
                // statement (`OR FAIL`).
                return """
                    INSERT OR FAIL INTO \(table) (\((key + columns).joined(separator: ", "))) \
                    VALUES \(rows.joined(separator: ", "))
                    """
            }
            assert(key.count == 2)
            firstOfKey = Int32(columns.count + 1)
        }

        /// The first parameter of the first row's key.
        fileprivate let firstOfKey: Int32
    }

    /// The numbers of rows that one run inserts, the largest first.
    private static let sizes = [16, 4, 2, 1]

    private let db: Database
    private let sql: SQL
    /// The prepared statements, in the order of ``sizes``. Each is prepared when it is first needed, because most
    /// transactions are short.
    private var statements: [PreparedStatement?] = Array(repeating: nil, count: sizes.count)

    init(_ db: Database, _ sql: SQL) {
        self.db = db
        self.sql = sql
    }

    /// - Parameter bind: binds the columns that all rows share.
    func run(_ keys: [(owner: Int64, seq: UInt64)], binding bind: (PreparedStatement) -> Void) throws {
        var rest = keys[...]
        for (index, size) in Self.sizes.enumerated() where rest.count >= size {
            let statement = try statements[index] ?? PreparedStatement(db, sql.texts[index])
            statements[index] = statement
            bind(statement)
            while rest.count >= size {
                var parameter = sql.firstOfKey
                for key in rest.prefix(size) {
                    statement.bind(key.owner, at: parameter)
                    statement.bind(key.seq, at: parameter + 1)
                    parameter += 2
                }
                try statement.run()
                rest = rest.dropFirst(size)
            }
        }
    }
}
