// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
import NIOCore

/// Adds publications to queues and removes them.
extension SessionWriter {
    mutating func publish(
        _ publication: StoredPublication,
        to targets: [PublicationTarget],
        received: ReceivedMark?,
        retains: Bool
    ) throws -> [UInt64] {
        let isPublisherKnown = try received.map { try head(of: $0.session) != nil } ?? false
        var seqs: [UInt64] = []
        seqs.reserveCapacity(targets.count)
        for target in targets {
            seqs.append(try nextSeq(of: target.session, weight: target.weight(of: publication)))
        }
        let extent = received?.extent(with: targets, seqs)
        if let received, let extent, isPublisherKnown {
            try mark(received, extent)
            try remember(PartialPublication.settled(targets, seqs), of: received, extent)
        }
        if retains, extent?.isComplete ?? true {
            retained[publication.topic] = publication
            publicationBytes += publication.weight
        }
        let count = seqs.reduce(0) { $0 + ($1 > 0 ? 1 : 0) }
        guard count > 0 else { return seqs }
        publicationBytes += publication.weight
        if count == 1, publication.weight <= Self.maxOwnWeight {
            for (target, seq) in zip(targets, seqs) where seq > 0 {
                let isFresh = !cache.long.takes(target.session)
                try insertOwn(publication, for: target, seq: seq, statements.queue(isFresh: isFresh).insertOwn)
                guard isFresh else { continue }
                cache.freshRows += 1
                cache.freshBytes += target.weight(of: publication)
            }
        } else {
            let key = try insert(publication, references: count)
            try insertShared(publication, key: key, for: targets, seqs)
        }
        return seqs
    }

    /// The values by which the plain rows of one publication are grouped.
    private struct PlainRow: Hashable {
        let flags: Int64
        let isFresh: Bool
    }

    /// Inserts the queue rows of a publication that is stored in a separate row.
    private mutating func insertShared(
        _ publication: StoredPublication,
        key: Int64,
        for targets: [PublicationTarget],
        _ seqs: [UInt64]
    ) throws {
        /// The keys of rows with neither identifiers nor a share. One statement can insert many such rows.
        var plain: [PlainRow: [(owner: Int64, seq: UInt64)]] = [:]
        for (target, seq) in zip(targets, seqs) where seq > 0 {
            let isFresh = !cache.long.takes(target.session)
            if isFresh { cache.freshRows += 1 }
            guard target.identifiers.isEmpty, target.share == nil else {
                let insert = statements.queue(isFresh: isFresh).insertShared
                try insertShared(publication, key: key, for: target, seq: seq, insert)
                continue
            }
            let flags = PublicationCoding.flags(qos: target.qos, retain: target.retain, publication)
            plain[PlainRow(flags: flags, isFresh: isFresh), default: []].append((target.session.rawValue, seq))
        }
        for (row, keys) in plain {
            try statements.queue(isFresh: row.isFresh).insertPlain.run(keys) { insert in
                insert.bind(row.flags, at: 1)
                insert.bind(Int64(publication.weight), at: 2)
                insert.bind(publication.details?.expiresAt?.rawValue, at: 3)
                insert.bind(key, at: 4)
            }
        }
    }

    /// Records a received packet identifier, if all parts of its publication are stored.
    private func mark(_ received: ReceivedMark, _ extent: ReceivedMark.Extent) throws {
        switch extent {
        case .whole: break
        case .part(let number, _), .rest(let number, _):
            if number == 0 { try forgetParts(of: received) }
            return
        case .last: try forgetParts(of: received)
        }
        statements.insertReceived.bind(received.session.rawValue, at: 1)
        statements.insertReceived.bind(Int64(received.id), at: 2)
        try statements.insertReceived.run()
    }

    private func forgetParts(of received: ReceivedMark) throws {
        statements.deleteParts.bind(received.session.rawValue, at: 1)
        statements.deleteParts.bind(Int64(received.id), at: 2)
        try statements.deleteParts.run()
    }

    /// Records the targets that get the publication with this part. If the publication is repeated before its last part
    /// is stored, only the other targets get it.
    private func remember(
        _ targets: [PublicationTarget],
        of received: ReceivedMark,
        _ extent: ReceivedMark.Extent
    ) throws {
        guard case .part(let number, let content) = extent, !targets.isEmpty else { return }
        let insert = statements.insertPart
        insert.bind(received.session.rawValue, at: 1)
        insert.bind(Int64(received.id), at: 2)
        insert.bind(Int64(number), at: 3)
        insert.bind(content, at: 4)
        try insert.bind(PublicationCoding.encode(targets), at: 5) { try insert.run() }
    }

    /// The largest weight, in bytes, of a publication that is stored in the queue's row. A larger publication would
    /// not fit into a page of the table's tree, and would slow down the access to its neighbors.
    private static let maxOwnWeight = 700

    /// Reserves the seq for another publication. Returns 0 if the session is gone, or if its queue or its payer's share
    /// is full.
    mutating func nextSeq(of id: DurableSessionID, weight: Int) throws -> UInt64 {
        guard let index = try head(of: id) else { return 0 }
        let head = cache.heads.values[index]
        guard head.queued < settings.maxQueuedMessages, head.bytes < settings.maxQueuedBytes else {
            // A full queue need not be one of the long queues, because it accepts nothing.
            cache.long.forget(id)
            return 0
        }
        let holding = Holding(entries: 1, bytes: weight)
        guard queues.hasRoom(for: holding, of: head.payer, with: queueChanges) else {
            refused += 1
            return 0
        }
        queueChanges.add(holding, of: head.payer)
        cache.heads.values[index].head += 1
        cache.heads.values[index].queued += 1
        cache.heads.values[index].bytes += weight
        cache.long.grew(id, to: head.queued + 1)
        markDirty(index)
        return cache.heads.values[index].head
    }

    private func insert(_ publication: StoredPublication, references: Int) throws -> Int64 {
        let insert = statements.insertPublication
        insert.bind(publication.publishedAt, at: 1)
        try insert.bind(publication.topic.rawValue, at: 2) {
            try insert.bind(publication.payload, at: 3) {
                try insert.bind(PublicationCoding.encode(publication.details), at: 4) { try insert.run() }
            }
        }
        let key = db.lastInsertedRowID
        statements.insertReferences.bind(key, at: 1)
        statements.insertReferences.bind(Int64(references), at: 2)
        try statements.insertReferences.run()
        return key
    }

    /// Binds the columns that come first in each row of a queue.
    private func bind(
        _ publication: StoredPublication,
        for target: PublicationTarget,
        seq: UInt64,
        to insert: PreparedStatement
    ) {
        insert.bind(target.session.rawValue, at: 1)
        insert.bind(seq, at: 2)
        insert.bind(PublicationCoding.flags(qos: target.qos, retain: target.retain, publication), at: 3)
        insert.bind(Int64(target.weight(of: publication)), at: 4)
        insert.bind(publication.details?.expiresAt?.rawValue, at: 5)
    }

    private func insertShared(
        _ publication: StoredPublication,
        key: Int64,
        for target: PublicationTarget,
        seq: UInt64,
        _ insert: PreparedStatement
    ) throws {
        bind(publication, for: target, seq: seq, to: insert)
        insert.bind(key, at: 6)
        try insert.bind(PublicationCoding.encode(target.identifiers), at: 7) {
            try insert.bind(target.share, at: 8) { try insert.run() }
        }
    }

    private func insertOwn(
        _ publication: StoredPublication,
        for target: PublicationTarget,
        seq: UInt64,
        _ insert: PreparedStatement
    ) throws {
        bind(publication, for: target, seq: seq, to: insert)
        insert.bind(publication.publishedAt, at: 6)
        try insert.bind(PublicationCoding.encode(target.identifiers), at: 7) {
            try insert.bind(publication.topic.rawValue, at: 8) {
                try insert.bind(publication.payload, at: 9) {
                    try insert.bind(PublicationCoding.encode(publication.details), at: 10) {
                        try insert.bind(target.share, at: 11) { try insert.run() }
                    }
                }
            }
        }
    }

    /// Deletes acknowledged publications, in as few ranges as possible.
    ///
    /// - Returns: the number of publications that were in the queue or released.
    mutating func complete(_ id: DurableSessionID, _ seqs: [UInt64]) throws -> Int {
        let seqs = seqs.sorted()
        var start = 0
        var rows = 0
        while start < seqs.count {
            var end = start + 1
            while end < seqs.count, seqs[end] <= seqs[end - 1] &+ 1 { end += 1 }
            rows += try complete(id, seqs[start]...seqs[end - 1])
            start = end
        }
        return rows
    }

    private mutating func complete(_ id: DurableSessionID, _ range: ClosedRange<UInt64>) throws -> Int {
        var gone = try take(range, of: id)
        if UInt64(gone.rows) <= range.upperBound - range.lowerBound {
            Self.bind(id, range, to: statements.deleteReleased)
            try statements.deleteReleased.run()
            gone.rows += db.changesCount
        }
        guard gone.rows > 0, let index = cache.heads.index(forKey: id) else { return 0 }
        lessen(index, rows: gone.rows, bytes: gone.bytes)
        return gone.rows
    }

    /// Counts publications or bytes that have left a queue.
    mutating func lessen(
        _ index: Dictionary<DurableSessionID, SessionCache.Head>.Index,
        rows: Int,
        bytes: Int
    ) {
        cache.heads.values[index].queued -= rows
        cache.long.lessened(cache.heads.keys[index], to: cache.heads.values[index].queued)
        cache.heads.values[index].bytes -= bytes
        queueChanges.add(Holding(entries: -rows, bytes: -bytes), of: cache.heads.values[index].payer)
        markDirty(index)
    }

    /// Deletes the content of a publication; its seq stays.
    mutating func release(_ id: DurableSessionID, _ seq: UInt64) throws {
        let gone = try take(seq...seq, of: id)
        guard gone.rows > 0 else { return }
        statements.insertReleased.bind(id.rawValue, at: 1)
        statements.insertReleased.bind(seq, at: 2)
        try statements.insertReleased.run()
        guard let index = cache.heads.index(forKey: id) else { return }
        lessen(index, rows: 0, bytes: gone.bytes)
    }

    /// Removes a range of seqs from the queue, from whichever table has them.
    mutating func take(
        _ range: ClosedRange<UInt64>,
        of id: DurableSessionID
    ) throws -> (rows: Int, bytes: Int) {
        var rows = 0
        var bytes = 0
        let tables = cache.long.takes(id) ? [statements.settled] : [statements.fresh, statements.settled]
        for table in tables {
            let before = rows
            Self.bind(id, range, to: table.select)
            try table.select.forEachRow { row in
                rows += 1
                bytes += row.amount(0)
                if !row.isNull(1) { dereferenced[row.integer(1), default: 0] += 1 }
            }
            if rows > before {
                Self.bind(id, range, to: table.delete)
                try table.delete.run()
            }
            // If each seq of the range has a row here, the other table has none of them.
            if UInt64(rows) > range.upperBound - range.lowerBound { break }
        }
        return (rows, bytes)
    }

    private static func bind(_ id: DurableSessionID, _ range: ClosedRange<UInt64>, to statement: PreparedStatement) {
        statement.bind(id.rawValue, at: 1)
        statement.bind(range.lowerBound, at: 2)
        statement.bind(range.upperBound, at: 3)
    }
}

/// Writes retained publications.
struct RetainedWriter {
    private let insert: PreparedStatement
    private let delete: PreparedStatement

    init(_ db: Database) throws {
        insert = try PreparedStatement(
            db,
            """
            INSERT OR REPLACE INTO retained (flags, published_at, expires_at, topic, payload, details, payer) \
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        )
        delete = try PreparedStatement(db, "DELETE FROM retained WHERE topic = ?")
    }

    func write(_ publications: some Sequence<StoredPublication>) throws {
        for publication in publications {
            guard !publication.isEmpty else {
                try delete.bind(publication.topic.rawValue, at: 1) { try delete.run() }
                continue
            }
            insert.bind(PublicationCoding.flags(qos: .atMostOnce, retain: false, publication), at: 1)
            insert.bind(publication.publishedAt, at: 2)
            insert.bind(publication.details?.expiresAt?.rawValue, at: 3)
            try insert.bind(publication.topic.rawValue, at: 4) {
                try insert.bind(publication.payload, at: 5) {
                    try insert.bind(PublicationCoding.encode(publication.details), at: 6) {
                        try insert.bind(publication.source.stored, at: 7) { try insert.run() }
                    }
                }
            }
        }
    }
}
