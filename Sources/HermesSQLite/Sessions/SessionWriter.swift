// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Applies one batch of session operations inside the writer's transaction, as ``BatchWriter`` does for messages.
///
/// Each operation is checked before it writes, so that a refused operation leaves nothing behind. If several
/// operations of a batch change the same value (a head, a number of references, the retained publication of a topic),
/// ``finish()`` writes the value once.
struct SessionWriter: SlicedWriter {
    typealias Operation = SessionOperation
    typealias Outcome = SessionOutcome

    let db: Database
    let settings: StoreSettings
    var time: TimeSlice
    /// The number of fresh rows that starts a sweep.
    let sweepRows: Int
    let statements: SessionStatements
    var cache: SessionCache
    var dirtyHeads: [DurableSessionID] = []
    /// The number of removed references to each shared publication.
    var dereferenced: [Int64: Int64] = [:]
    /// The number of fresh rows before this batch.
    private let freshBefore: Int
    /// The newest retained publication of each topic.
    var retained: [TopicName: StoredPublication] = [:]
    /// The queued publications by owner before this batch.
    let queues: QueueBudget
    /// The changes that this batch makes to the queued publications.
    var queueChanges = OwnerTally()
    /// The number of publications that found no room in their owner's share.
    var refused = 0
    /// The bytes of this batch's publications. Retained publications are written at the end, when no time is measured.
    /// So their bytes also limit the batch.
    var publicationBytes = 0

    /// When the publications of a transaction have this many bytes, the transaction accepts no further operation. All
    /// clients wait while the transaction's pages are written to the log, which takes some 5 ms for each mebibyte.
    static let maxPublicationBytes = 1 << 20

    init(
        _ db: Database,
        cache: consuming SessionCache,
        queues: QueueBudget,
        settings: StoreSettings,
        time: TimeSlice,
        sweepRows: Int
    ) throws {
        self.time = time
        self.sweepRows = sweepRows
        self.db = db
        self.settings = settings
        self.queues = queues
        self.cache = cache
        freshBefore = self.cache.freshRows
        statements = try SessionStatements(db)
        self.cache.trim()
    }

    /// Whether another operation fits into the transaction. A running sweep gets a part of the time.
    var hasTime: Bool {
        time.elapsed < FreshSweep.share(of: time, beside: cache.sweep, isLate: cache.freshRows >= 4 * sweepRows)
    }

    /// Whether the transaction already writes enough, even if it has time left.
    var isFull: Bool { publicationBytes >= Self.maxPublicationBytes }

    static var refusedForDamage: SessionOutcome { .refused(Damage.refusal) }

    /// - Throws: errors that fail the whole batch. A refused operation is an outcome, not an error.
    mutating func apply(_ operation: SessionOperation) throws -> SessionOutcome {
        switch operation {
        case .open(let key, let clean, let expiry, let payer, _):
            return .opened(try open(key, clean: clean, expiry: expiry, payer: payer))
        case .remove(let id, _):
            try remove(id)
            return .done
        case .publish(let publication, let targets, let received, let retains):
            return .published(try publish(publication, to: targets, received: received, retains: retains))
        case .move(let move):
            publicationBytes += move.items.reduce(0) { $0 + $1.queued.publication.weight }
            return try self.move(move) ?? Self.noSuchSession
        case .retain(let publication):
            retained[publication.topic] = publication
            publicationBytes += publication.weight
            return .done
        case .close(let id, let sentUpTo, let expiresAt, _):
            guard let head = try head(of: id) else { return Self.noSuchSession }
            try close(id, sentUpTo: min(sentUpTo, cache.heads.values[head].head), expiresAt: expiresAt)
        case .subscribe(let id, let subscriptions):
            guard try head(of: id) != nil else { return Self.noSuchSession }
            try subscribe(id, subscriptions)
        case .unsubscribe(let id, let filters):
            guard try head(of: id) != nil else { return Self.noSuchSession }
            try unsubscribe(id, filters)
        case .completed(let id, let seqs):
            guard try head(of: id) != nil else { return Self.noSuchSession }
            return .completed(try complete(id, seqs))
        case .released(let id, let seq):
            guard try head(of: id) != nil else { return Self.noSuchSession }
            try release(id, seq)
        case .receivedReleased(let id, let packetID):
            guard try head(of: id) != nil else { return Self.noSuchSession }
            statements.deleteReceived.bind(id.rawValue, at: 1)
            statements.deleteReceived.bind(Int64(packetID), at: 2)
            try statements.deleteReceived.run()
        }
        return .done
    }

    /// Writes the collected values and returns the cache.
    consuming func finish() throws -> SessionCache {
        for id in dirtyHeads {
            guard let index = cache.heads.index(forKey: id) else { continue }
            let head = cache.heads.values[index]
            statements.updateHead.bind(head.head, at: 1)
            statements.updateHead.bind(Int64(head.queued), at: 2)
            statements.updateHead.bind(Int64(head.bytes), at: 3)
            statements.updateHead.bind(id.rawValue, at: 4)
            try statements.updateHead.run()
            cache.heads.values[index].isDirty = false
        }
        if !dereferenced.isEmpty { try PublicationReleaser(db).release(dereferenced) }
        if !retained.isEmpty { try RetainedWriter(db).write(retained.values) }
        try settleSlice()
        return cache
    }

    /// Moves some fresh rows to their permanent table, if there are many.
    private mutating func settleSlice() throws {
        if cache.sweep == nil, cache.freshRows >= sweepRows || cache.freshBytes >= Self.maxFreshBytes {
            cache.sweep = FreshSweep([.queue])
            cache.sweptBytes = cache.freshBytes
        }
        guard var sweep = cache.sweep else { return }
        let before = sweep.place
        try sweep.step(db, appended: cache.freshRows - freshBefore, time)
        if let before { cache.long.swept(from: before.owner, upTo: sweep.place?.owner ?? .max) }
        if sweep.isDone {
            cache.freshRows = sweep.appended
            cache.freshBytes -= min(cache.freshBytes, cache.sweptBytes)
            cache.sweep = nil
        } else {
            cache.sweep = sweep
        }
    }

    /// Moves all fresh rows to their permanent table, when the store is opened.
    static func settle(_ db: Database) throws {
        for sql in FreshTables.queue.moveAllSQL { try PreparedStatement(db, sql).run() }
    }

    /// A sweep starts when the fresh rows have this size, in bytes. This many bytes fit into the writer's page cache.
    static let maxFreshBytes = 8 << 20

    /// Returns the index of a session's head in the cache, after reading the head if necessary; nil if there is no such
    /// session.
    mutating func head(of id: DurableSessionID) throws -> Dictionary<DurableSessionID, SessionCache.Head>.Index? {
        if let index = cache.heads.index(forKey: id) { return index }
        statements.selectHead.bind(id.rawValue, at: 1)
        let found = try statements.selectHead.first { row in
            SessionCache.Head(
                head: try row.sequence(0),
                queued: row.amount(1),
                bytes: row.amount(2),
                payer: row.payer(3)
            )
        }
        guard let found else { return nil }
        cache.heads[id] = found
        return cache.heads.index(forKey: id)
    }

    mutating func markDirty(_ index: Dictionary<DurableSessionID, SessionCache.Head>.Index) {
        guard !cache.heads.values[index].isDirty else { return }
        cache.heads.values[index].isDirty = true
        dirtyHeads.append(cache.heads.keys[index])
    }

    private static let noSuchSession = SessionOutcome.refused(StoreRefusals.noSuchSession)
}
