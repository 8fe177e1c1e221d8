// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// A read met the damaged row of an inbox (``InboxRow/rebuild(_:in:)``).
struct DamagedInbox: Error {
    let user: UserID
}

/// The row of an inbox in `inbox_head`. A damaged row is rebuilt from the inbox's entries, devices and marks, so that
/// it does not lock its account out.
enum InboxRow {
    /// If the head is damaged, the new head is this far above all known seqs. Higher seqs than the known ones may have
    /// been assigned without a trace: their entries have expired, or were never stored. If such a seq were assigned
    /// again, a client would take the new entry for a repetition. An inbox does not get that many seqs, and JavaScript
    /// can express the new ones (2⁵³). The clients see the missing seqs as a hole, so the store's epoch can stay.
    static let jump: UInt64 = 1 << 32
    /// The largest seq from which a row is rebuilt. Entries and marks with higher seqs are damaged and ignored. So the
    /// new head and the 2³² seqs above it are at most 2⁵³.
    static let maxKnown = (1 << 53) - 2 * Int64(jump)

    private static let boundsSQL = """
        SELECT h.head, h.oldest, \
        (SELECT coalesce(max(seq), 0) FROM inbox WHERE user = ?1 AND seq <= ?2), \
        (SELECT coalesce(max(seq), 0) FROM inbox_fresh WHERE user = ?1 AND seq <= ?2), \
        (SELECT coalesce(min(cursor), 0) FROM device WHERE user = ?1), \
        (SELECT coalesce(max(cursor), 0) FROM device WHERE user = ?1), \
        (SELECT coalesce(max(pushed_up_to), 0) FROM push_token WHERE user = ?1 AND pushed_up_to <= ?2), \
        (SELECT coalesce(max(reported_up_to), 0) FROM webhook_mark WHERE user = ?1 AND reported_up_to <= ?2) \
        FROM inbox_head h WHERE h.user = ?1
        """

    private static let updateSQL = """
        UPDATE inbox_head SET head = ?2, \
        oldest = min(?2 + 1, \
        coalesce((SELECT min(seq) FROM inbox WHERE user = ?1 AND seq > 0), ?2 + 1), \
        coalesce((SELECT min(seq) FROM inbox_fresh WHERE user = ?1 AND seq > 0), ?2 + 1)), \
        acknowledged = coalesce((SELECT iif(max(proof) > \(DeviceProof.claim.rawValue) AND min(cursor) BETWEEN 0 AND ?2, \
        min(cursor), 0) FROM device WHERE user = ?1), 0) WHERE user = ?1
        """

    /// A row that was rebuilt from other rows.
    struct Rebuilt: Sendable {
        let user: UserID
        /// The damaged numbers.
        let was: String
        /// The numbers that replace them.
        let now: String
    }

    /// Rebuilds the damaged row of an inbox.
    ///
    /// - Returns: the report, for ``Damage/rebuilt(_:)`` after the commit; nil if there is no such row, or if the
    ///   numbers from which it is rebuilt are damaged, too.
    static func rebuild(_ user: UserID, in db: Database) throws -> Rebuilt? {
        let select = try PreparedStatement(db, boundsSQL)
        select.bind(user, at: 1)
        select.bind(maxKnown, at: 2)
        var numbers: [Int64] = []
        try select.forEachRow { row in numbers = (0..<8).map { row.integer($0) } }
        guard let head = head(numbers) else { return nil }
        let update = try PreparedStatement(db, updateSQL)
        update.bind(user, at: 1)
        update.bind(head, at: 2)
        try update.run()
        _ = try InboxCounts.recount(user, in: db)
        return Rebuilt(user: user, was: "head \(numbers[0]), oldest \(numbers[1])", now: "head \(head)")
    }

    /// - Parameter numbers: the columns of ``boundsSQL``.
    /// - Returns: nil if the head cannot be known.
    private static func head(_ numbers: [Int64]) -> UInt64? {
        let sound = 0...PreparedStatement.maxSequence
        let known = 0...maxKnown
        guard numbers.count == 8 else { return nil }
        if sound.contains(numbers[0]) { return UInt64(numbers[0]) }
        guard known.contains(numbers[4]), known.contains(numbers[5]) else { return nil }
        let oldest = known.contains(numbers[1]) ? numbers[1] : 0
        // The head is at least the number before the oldest entry.
        let last = max(numbers[2...3].max() ?? 0, numbers[5...7].max() ?? 0, oldest - 1)
        return UInt64(last) + jump
    }
}

extension SQLiteStore {
    /// Runs queries that need the row of an inbox. If the row is damaged, it is rebuilt, and the queries run again. If
    /// it could not be rebuilt, later reads do not try again, because each try costs a write transaction. Only the next
    /// operation that writes to the inbox tries again.
    ///
    /// - Parameter isShared: whether the queries are short and may share a snapshot with others (``SharedReads``).
    func readInbox<Value: Sendable>(
        isShared: Bool = false,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(HermesError) -> Value {
        func query() async throws -> Value { try await isShared ? sharedReads.read(body) : pool.read(body) }
        let user: UserID
        do {
            return try await query()
        } catch let damaged as DamagedInbox {
            user = damaged.user
        } catch {
            throw failure(error)
        }
        if damage.isLost(inboxOf: user) { throw Damage.refusal }
        try await write { [epoch, damage] (db, users) in
            do {
                // Another read may have rebuilt the row already.
                _ = try InboxReader(db: db, epoch: epoch, damage: damage).position(of: user)
            } catch is DamagedInbox {
                users.append(user)
                guard let rebuilt = try InboxRow.rebuild(user, in: db) else { return damage.lost(inboxOf: user) }
                db.afterNextTransaction { _ in damage.rebuilt(rebuilt) }
            }
        }
        do {
            return try await query()
        } catch {
            throw failure(error)
        }
    }
}
