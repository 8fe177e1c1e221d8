// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Pushes.
extension BatchWriter {
    mutating func apply(_ operation: PushOperation) throws -> PushOutcome {
        switch operation {
        case .append(let push, let recipients, let claim):
            if let first = try take(claim) { return PushOutcome(firstAnswer: first) }
            // A push to one account fails if the account's inbox is damaged.
            return PushOutcome(deliveries: try append(push, to: recipients, skipsDamaged: recipients.count > 1))
        case .accept(let job, let claim):
            if let first = try take(claim) { return PushOutcome(firstAnswer: first) }
            try insert(job)
            return PushOutcome()
        case .fanOut(let id, let limit):
            return try fanOut(id, limit)
        case .claim(let claim):
            let first = try take(claim, leavesOpen: true)
            guard try isOpen(claim) else { return PushOutcome(firstAnswer: first) }
            var outcome = PushOutcome()
            outcome.openAnswer = first
            return outcome
        case .settle(let claim):
            try settle(claim)
            return PushOutcome()
        case .find(let claim):
            let first = try answer(to: claim)
            return PushOutcome(firstAnswer: try first != nil && isOpen(claim) ? nil : first)
        }
    }

    // MARK: Claims

    /// Stores a claim, unless it is already stored.
    ///
    /// - Returns: the answer that was stored with the earlier claim; nil if the claim is new.
    private func take(_ claim: PushClaim?, leavesOpen: Bool = false) throws -> [UInt8]? {
        guard let claim else { return nil }
        if let first = try answer(to: claim) { return first }
        let insert = try PreparedStatement(
            db,
            """
            INSERT OR REPLACE INTO push_claim (owner, key, content_hash, answer, expires_at, is_open) \
            VALUES (?, ?, ?, ?, ?, ?)
            """
        )
        insert.bind(now.advanced(by: PushClaim.period), at: 5)
        insert.bind(leavesOpen ? 1 : Int64(0), at: 6)
        try insert.bind(claim.owner, at: 1) {
            try insert.bind(claim.key, at: 2) {
                try insert.bind(claim.contentHash, at: 3) {
                    try insert.bind(claim.answer, at: 4) { try insert.run() }
                }
            }
        }
        return nil
    }

    /// Returns the answer that was stored earlier with the same claim; nil if there is none.
    private func answer(to claim: PushClaim) throws -> [UInt8]? {
        let select = try PreparedStatement(
            db,
            "SELECT content_hash, answer, expires_at FROM push_claim WHERE owner = ? AND key = ?"
        )
        let first = try select.bind(claim.owner, at: 1) {
            try select.bind(claim.key, at: 2) {
                try select.first { row in (hash: row.bytes(0), answer: row.bytes(1), expiresAt: row.timestamp(2)) }
            }
        }
        guard let first, !claim.comesAfter(first.expiresAt, now: now) else { return nil }
        guard first.hash == claim.contentHash else { throw PushClaim.conflict }
        return first.answer
    }

    private func isOpen(_ claim: PushClaim) throws -> Bool {
        let select = try PreparedStatement(db, "SELECT is_open FROM push_claim WHERE owner = ? AND key = ?")
        return try select.bind(claim.owner, at: 1) {
            try select.bind(claim.key, at: 2) { try select.first { $0.integer(0) != 0 } }
        } ?? false
    }

    private func settle(_ claim: PushClaim) throws {
        let update = try PreparedStatement(
            db,
            "UPDATE push_claim SET is_open = 0 WHERE owner = ? AND key = ? AND content_hash = ?"
        )
        try update.bind(claim.owner, at: 1) {
            try update.bind(claim.key, at: 2) { try update.bind(claim.contentHash, at: 3) { try update.run() } }
        }
    }

    // MARK: Jobs

    private func insert(_ job: PushJob) throws {
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO push_job (id, push, users, cursor, last_user) \
            VALUES (?, ?, ?, 0, (SELECT coalesce(max(id), 0) FROM account))
            """
        )
        let users: [UInt8]? = if case .users(let users) = job.target { UserList.encode(users) } else { nil }
        try insert.bind(job.push.id.bytes, at: 1) {
            try insert.bind(Self.stored(job.push), at: 2) {
                try insert.bind(users, at: 3) { try insert.run() }
            }
        }
    }

    private static func stored(_ push: Push) -> [UInt8] {
        var bytes: [UInt8] = []
        push.store(into: &bytes)
        return bytes
    }

    private struct Job {
        let number: Int64
        let push: Push
        let users: [UInt8]?
        let cursor: Int64
        let lastUser: Int64
    }

    private mutating func fanOut(_ id: MessageID, _ limit: FanOutLimit) throws -> PushOutcome {
        // A damaged job counts as done, so that it is not tried again each second. Its row stays in the database.
        let found = try damage.skipping("push job \(id)") { try self.job(id) }
        guard let job = found.flatMap({ $0 }) else { return PushOutcome() }
        guard job.push.expiresAt > now else {
            guard limit.ends(job.push, now: now) else { return .heldBack }
            try move(job, to: nil)
            return PushOutcome()
        }
        let most = min(max(1, limit.recipients), 10_000)
        var recipients: [UserID] = []
        var cursor: Int64? = nil
        if let users = job.users {
            recipients = UserList.users(users, from: Int(job.cursor), limit: most)
            let next = Int(job.cursor) + recipients.count
            if 4 * next < users.count, !recipients.isEmpty { cursor = Int64(next) }
        } else {
            let looked = try accounts(after: job.cursor, upTo: job.lastUser, limit: most)
            recipients = looked.filter { !$0.isDisabled }.map(\.user)
            if looked.count == most, let last = looked.last { cursor = Int64(last.user.rawValue) }
        }
        try move(job, to: cursor)
        let deliveries = try append(job.push, to: recipients, skipsDamaged: true)
        return PushOutcome(deliveries: deliveries, isDone: cursor == nil)
    }

    private func job(_ id: MessageID) throws -> Job? {
        let select = try PreparedStatement(
            db,
            "SELECT number, push, users, cursor, last_user FROM push_job WHERE id = ?"
        )
        return try select.bind(id.bytes, at: 1) {
            try select.first { row in
                var bytes = row.bytes(1)[...]
                guard let push = Push(stored: &bytes) else { throw StoreFailure.damagedRow }
                let users = row.isNull(2) ? nil : row.bytes(2)
                // If a job has a list of users, its cursor is an index into this list.
                let cursor = row.integer(3)
                guard cursor >= 0, users.map({ cursor <= $0.count / 4 }) ?? true else { throw StoreFailure.damagedRow }
                return Job(
                    number: row.integer(0),
                    push: push,
                    users: users,
                    cursor: cursor,
                    lastUser: row.integer(4)
                )
            }
        }
    }

    /// Stores a job's new cursor.
    ///
    /// - Parameter cursor: the new cursor; nil if the job is done. A job that is done is deleted.
    private func move(_ job: Job, to cursor: Int64?) throws {
        let statement = try PreparedStatement(
            db,
            cursor == nil
                ? "DELETE FROM push_job WHERE number = ?1" : "UPDATE push_job SET cursor = ?2 WHERE number = ?1"
        )
        statement.bind(job.number, at: 1)
        if cursor != nil { statement.bind(cursor, at: 2) }
        try statement.run()
    }

    private func accounts(
        after cursor: Int64,
        upTo last: Int64,
        limit: Int
    ) throws -> [(user: UserID, isDisabled: Bool)] {
        let select = try PreparedStatement(
            db,
            "SELECT id, is_disabled FROM account WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        )
        select.bind(cursor, at: 1)
        // A damaged id may be higher than the highest valid id.
        select.bind(min(last, Int64(Int32.max)), at: 2)
        select.bind(Int64(limit), at: 3)
        var found: [(user: UserID, isDisabled: Bool)] = []
        try select.forEachRow { row in
            found.append((try row.user(0), row.integer(1) != 0))
        }
        return found
    }

    // MARK: Entries

    /// - Parameter skipsDamaged: whether recipients whose inboxes are damaged are left out, so that the others get the
    ///   push.
    private mutating func append(
        _ push: Push,
        to recipients: [UserID],
        skipsDamaged: Bool
    ) throws -> [InboxDelivery] {
        let (kind, payload) = (Push.storedKind.rawValue, Self.stored(push))
        let name = push.content.collapseKey.isEmpty ? nil : push.collapseName
        let statement = statements.insertEvent
        let weight = InboxBudget.weight(ofContent: push.weight)
        var deliveries: [InboxDelivery] = []
        deliveries.reserveCapacity(recipients.count)
        for user in recipients where try skipsDamaged ? loadSoundInbox(of: user) : loadInbox(of: user) {
            let seq = advanceInbox(of: user)
            guard try hasReserve(in: user, by: nil, weight) else { continue }
            if let name { try collapse(name, of: user, into: seq, expiresAt: push.expiresAt) }
            statement.bind(user, at: 1)
            statement.bind(seq, at: 2)
            statement.bind(kind, at: 3)
            statement.bind(now, at: 4)
            statement.bind(push.expiresAt, at: 5)
            statement.bind(Int64(weight), at: 7)
            try statement.bind(payload, at: 6) { try statement.run() }
            count(weight, from: .server, in: user)
            deliveries.append(
                InboxDelivery(user: user, entry: InboxEntry(seq: seq, committedAt: now, event: .push(push)))
            )
        }
        return deliveries
    }

    /// Removes the entry that the entry with `seq` replaces.
    private mutating func collapse(_ name: String, of user: UserID, into seq: UInt64, expiresAt: Timestamp) throws {
        let select = try PreparedStatement(db, "SELECT seq FROM push_collapse WHERE user = ? AND name = ?")
        select.bind(user, at: 1)
        let old = try select.bind(name, at: 2) { try select.first { $0.unsigned(0) } }
        if let old {
            for table in FreshTables.inbox.both {
                let delete = try PreparedStatement(
                    db,
                    "DELETE FROM \(table) WHERE user = ? AND seq = ? AND message IS NULL RETURNING source, weight"
                )
                delete.bind(user, at: 1)
                delete.bind(old, at: 2)
                guard let (source, weight) = try delete.first({ ($0.integer(0), $0.amount(1)) }) else { continue }
                effects.inboxes.went(weight)
                cache.inboxes[user]?.use.subtract(weight)
                cache.inboxes[user]?.shares?.remove(Holding(entries: 1, bytes: weight), from: source)
            }
        }
        let note = try PreparedStatement(
            db,
            "INSERT OR REPLACE INTO push_collapse (user, name, seq, expires_at) VALUES (?, ?, ?, ?)"
        )
        note.bind(user, at: 1)
        note.bind(seq, at: 3)
        note.bind(expiresAt, at: 4)
        try note.bind(name, at: 2) { try note.run() }
    }
}
