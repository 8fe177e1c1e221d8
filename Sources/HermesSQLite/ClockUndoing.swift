// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reverses the effect of a jump that turned out to be wrong (``ClockSetback``). Each transaction handles some of the
/// rows.
struct ClockUndoing: Sendable {
    /// A position in the index of expiries. It has the row's own numbers, even if they are damaged, so that the next
    /// step begins after the row.
    struct Entry: Sendable {
        let expiresAt: Int64
        let user: Int64
        let seq: Int64
    }

    private static let rows: Int64 = 256
    /// An id may be older than its row by up to this time.
    private static let slack = Duration.seconds(3_600)

    let jump: ClockJump
    let setback: ClockSetback
    let damage: Damage

    private var back: Duration { .zero - jump.length }

    /// A key below the keys of all messages that the jump can affect. Keys begin with the time (``MessageKey``).
    var firstMessage: Int64 {
        max(0, jump.times.lowerBound.advanced(by: .zero - Self.slack).rawValue) << 16
    }

    /// A position before all entries that the jump can affect. These entries expire after the first time stamp that
    /// was too late.
    var firstEntry: Entry {
        Entry(expiresAt: jump.times.lowerBound.advanced(by: jump.length).rawValue, user: 0, seq: 0)
    }

    /// Moves back the times of the next messages whose stored times are too late.
    ///
    /// - Returns: the last key that was examined; nil if there are no more messages.
    func messages(after last: Int64, in db: Database) throws -> Int64? {
        let query = try PreparedStatement(
            db,
            "SELECT key, committed_at FROM message WHERE key > ? ORDER BY key LIMIT ?"
        )
        query.bind(last, at: 1)
        query.bind(Self.rows, at: 2)
        var end: Int64?
        var late: [Int64] = []
        try query.forEachRow { row in
            end = row.integer(0)
            if setback.concerns(row.timestamp(1), of: jump) { late.append(row.integer(0)) }
        }
        for key in late { try ClockCorrection.moveMessage(key, by: back, in: db) }
        return end
    }

    /// Moves back the times of the next entries whose stored times are too late.
    ///
    /// - Returns: the last entry that was examined; nil if there are no more entries.
    func entries(of table: String, after last: Entry, in db: Database) throws -> Entry? {
        let query = try PreparedStatement(
            db,
            """
            SELECT expires_at, user, seq, committed_at FROM \(table) WHERE expires_at IS NOT NULL \
            AND (expires_at, user, seq) > (?, ?, ?) ORDER BY expires_at, user, seq LIMIT ?
            """
        )
        query.bind(last.expiresAt, at: 1)
        query.bind(last.user, at: 2)
        query.bind(last.seq, at: 3)
        query.bind(Self.rows, at: 4)
        var end: Entry?
        var late: [(user: UserID, seq: UInt64)] = []
        try query.forEachRow { row in
            end = Entry(expiresAt: row.integer(0), user: row.integer(1), seq: row.integer(2))
            guard setback.concerns(row.timestamp(3), of: jump) else { return }
            let user = try damage.skipping("inbox of user \(row.integer(1))") { try row.user(1) }
            if let user { late.append((user, row.unsigned(2))) }
        }
        for (user, seq) in late { try ClockCorrection.moveEntry(seq, of: user, in: table, by: back, in: db) }
        return end
    }
}
