// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// Two tables that act as one. Commits write to the small fresh table, from which rows move to the permanent table.
struct FreshTables {
    /// The second column of the primary key: a number, or a text.
    enum Key: Equatable {
        case number(Int64)
        case text(String)
    }

    /// A row's place in the order of the primary key.
    struct Place: Equatable {
        let owner: Int64
        let key: Key

        static let beginning = Place(owner: .min, key: .number(.min))
    }

    let settled: String
    let fresh: String
    /// The primary key's columns.
    let owner: String
    let key: String

    static let inbox = FreshTables(settled: "inbox", fresh: "inbox_fresh", owner: "user", key: "seq")
    static let clientIDs = FreshTables(
        settled: "client_id",
        fresh: "client_id_fresh",
        owner: "sender",
        key: "client_id"
    )
    static let queue = FreshTables(
        settled: "session_queue",
        fresh: "session_queue_fresh",
        owner: "session",
        key: "seq"
    )

    /// Both tables, the settled one first: its rows are older than those of the fresh one.
    var both: [String] { [settled, fresh] }

    var selectSQL: String {
        """
        SELECT \(owner), \(key) FROM \(fresh) WHERE (\(owner), \(key)) > (?1, ?2) \
        ORDER BY \(owner), \(key) LIMIT 1 OFFSET ?3
        """
    }

    var insertSQL: String { "\(copySQL) WHERE \(range) ORDER BY \(owner), \(key)" }

    var deleteSQL: String { "DELETE FROM \(fresh) WHERE \(range)" }

    /// A settled row has the same key as a fresh row only if one of the two is damaged. Keys only increase, so the
    /// settled row is the damaged one, and the fresh row replaces it.
    private var copySQL: String { "INSERT OR REPLACE INTO \(settled) SELECT * FROM \(fresh)" }

    private var range: String { "(\(owner), \(key)) > (?1, ?2) AND (\(owner), \(key)) <= (?3, ?4)" }

    /// The SQL that moves all rows in the order of the primary key, when the store is opened and nothing else runs.
    var moveAllSQL: [String] {
        ["\(copySQL) ORDER BY \(owner), \(key)", "DELETE FROM \(fresh)"]
    }

    /// Moves up to `limit` rows after `place`.
    ///
    /// - Returns: the number of moved rows, and the place of the last one. The place is nil if all rows after `place`
    ///   were moved.
    func move(_ db: Database, after place: Place, limit: Int) throws -> (rows: Int, last: Place?) {
        let select = try PreparedStatement(db, selectSQL)
        select.bind(place.owner, at: 1)
        select.bind(Int64(max(1, limit) - 1), at: 3)
        let isText = key == "client_id"
        let last = try bind(place.key, to: select, at: 2) {
            try select.first { row in
                Place(owner: row.integer(0), key: isText ? .text(row.text(1) ?? "") : .number(row.integer(1)))
            }
        }
        // No row has the largest owner, so this bound covers all remaining rows.
        let end = last ?? Place(owner: .max, key: .number(.max))
        var rows = 0
        for sql in [insertSQL, deleteSQL] {
            let statement = try PreparedStatement(db, sql)
            statement.bind(place.owner, at: 1)
            statement.bind(end.owner, at: 3)
            try bind(place.key, to: statement, at: 2) {
                try bind(end.key, to: statement, at: 4) { try statement.run() }
            }
            rows = db.changesCount
        }
        return (rows, last)
    }

    private func bind<Result>(
        _ key: Key,
        to statement: PreparedStatement,
        at index: Int32,
        while body: () throws -> Result
    ) throws -> Result {
        switch key {
        case .number(let number):
            statement.bind(number, at: index)
            return try body()
        case .text(let text):
            return try statement.bind(text, at: index, while: body)
        }
    }
}
