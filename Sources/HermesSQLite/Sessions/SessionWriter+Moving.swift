// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Moves publications of shared subscriptions from one queue to another.
extension SessionWriter {
    /// - Returns: nil if there is no such session.
    mutating func move(_ move: QueueMove) throws -> SessionOutcome? {
        guard try head(of: move.session) != nil else { return nil }
        if case .isOffline = move.condition, try isOnline(move.session) {
            return .moved(move.items.map { _ in .stays }, hasEnded: false)
        }
        var outcomes: [QueueMove.Outcome] = []
        outcomes.reserveCapacity(move.items.count)
        if !move.items.isEmpty {
            let statements = try FreshTables.queue.both.reversed().map { try MoveStatements(db, $0) }
            for item in move.items { outcomes.append(try self.move(item, of: move.session, statements)) }
        }
        guard let behind = move.endsBehind, !outcomes.contains(.stays), try !hasShared(move.session, behind: behind)
        else { return .moved(outcomes, hasEnded: false) }
        try remove(move.session)
        return .moved(outcomes, hasEnded: true)
    }

    private struct MoveStatements {
        let select: PreparedStatement
        let insert: PreparedStatement
        let delete: PreparedStatement

        init(_ db: Database, _ table: String) throws {
            select = try PreparedStatement(
                db,
                """
                SELECT weight, coalesce(length(identifiers), 0) + coalesce(length(CAST(share AS BLOB)), 0) \
                FROM \(table) WHERE session = ? AND seq = ?
                """
            )
            insert = try PreparedStatement(
                db,
                """
                INSERT INTO session_queue_fresh (session, seq, flags, weight, expires_at, identifiers, publication, \
                published_at, topic, payload, details, share) \
                SELECT ?, ?, (flags & -8) | ?, ?, \(QueueExpiry.time("expires_at")), ?, publication, published_at, \
                topic, payload, details, ? FROM \(table) WHERE session = ? AND seq = ?
                """
            )
            delete = try PreparedStatement(db, "DELETE FROM \(table) WHERE session = ? AND seq = ?")
        }

        static func bind(
            _ session: DurableSessionID,
            _ seq: UInt64,
            to statement: PreparedStatement,
            at index: Int32 = 1
        ) {
            statement.bind(session.rawValue, at: index)
            statement.bind(seq, at: index + 1)
        }
    }

    private mutating func move(
        _ item: QueueMove.Item,
        of session: DurableSessionID,
        _ tables: [MoveStatements]
    ) throws -> QueueMove.Outcome {
        let seq = item.queued.seq
        guard let target = item.target else {
            let gone = try take(seq...seq, of: session)
            guard gone.rows > 0 else { return .gone }
            try lessen(session, rows: gone.rows, bytes: gone.bytes)
            return .takenOut
        }
        for table in tables {
            MoveStatements.bind(session, seq, to: table.select)
            guard let (weight, added) = try table.select.first({ ($0.amount(0), $0.amount(1)) }) else { continue }
            let payer = try head(of: session).map { cache.heads.values[$0].payer } ?? .server
            // The publication is first counted as removed from its queue. So an owner whose share is full can still
            // move it to another queue of the same owner.
            queueChanges.add(Holding(entries: -1, bytes: -weight), of: payer)
            let newWeight = max(0, weight - added) + target.addedWeight
            let new = try nextSeq(of: target.session, weight: newWeight)
            queueChanges.add(Holding(entries: 1, bytes: weight), of: payer)
            guard new > 0 else { return .stays }
            let flags = Int64(target.qos.rawValue) | (target.retain ? 4 : 0)
            MoveStatements.bind(target.session, new, to: table.insert)
            table.insert.bind(flags, at: 3)
            table.insert.bind(Int64(newWeight), at: 4)
            MoveStatements.bind(session, seq, to: table.insert, at: 7)
            try table.insert.bind(PublicationCoding.encode(target.identifiers), at: 5) {
                try table.insert.bind(target.share, at: 6) { try table.insert.run() }
            }
            MoveStatements.bind(session, seq, to: table.delete)
            try table.delete.run()
            try lessen(session, rows: 1, bytes: weight)
            cache.long.forget(target.session)
            cache.freshRows += 1
            cache.freshBytes += newWeight
            return .queued(new)
        }
        return .gone
    }

    private mutating func lessen(_ session: DurableSessionID, rows: Int, bytes: Int) throws {
        guard let index = try head(of: session) else { return }
        lessen(index, rows: rows, bytes: bytes)
    }

    private func isOnline(_ session: DurableSessionID) throws -> Bool {
        let query = try PreparedStatement(db, "SELECT is_online FROM session WHERE id = ?")
        query.bind(session.rawValue, at: 1)
        return try query.first { $0.integer(0) != 0 } ?? false
    }

    private func hasShared(_ session: DurableSessionID, behind seq: UInt64) throws -> Bool {
        for table in FreshTables.queue.both.reversed() {
            let query = try PreparedStatement(
                db,
                // An entry with a damaged seq is never read, so it must not keep the session alive.
                """
                SELECT 1 FROM \(table) WHERE session = ? AND seq > ? AND seq <= \(PreparedStatement.maxSequence) \
                AND share IS NOT NULL LIMIT 1
                """
            )
            query.bind(session.rawValue, at: 1)
            query.bind(min(seq, UInt64(Int64.max)), at: 2)
            if try query.first({ $0.integer(0) }) != nil { return true }
        }
        return false
    }
}
