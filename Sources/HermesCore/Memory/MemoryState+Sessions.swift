// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Durable sessions and retained publications.
extension MemoryState {
    /// A durable session with its queue.
    struct Session {
        var stored: StoredSession
        var subscriptions: [TopicText: SubscriptionOptions] = [:]
        /// The queue, ascending by seq.
        var queue: [QueuedPublication] = []
        var released: Set<UInt64> = []
        var received: Set<UInt16> = []
        /// The stored parts of incomplete publications, by packet identifier and by number of the part. A part consists
        /// of a hash of the content and the targets that have the part.
        var parts: [UInt16: [Int: (content: Int64, targets: [PublicationTarget])]] = [:]

        var holding: Holding { Holding(entries: stored.queuedCount, bytes: stored.queuedBytes) }

        /// Records that a packet identifier was received. For a part of a publication, records the targets that have
        /// this part.
        mutating func mark(_ mark: ReceivedMark, _ extent: ReceivedMark.Extent, _ targets: [PublicationTarget]) {
            switch extent {
            case .whole:
                received.insert(mark.id)
            case .last:
                parts[mark.id] = nil
                received.insert(mark.id)
            case .part(let number, let content), .rest(let number, let content):
                if number == 0 { parts[mark.id] = nil }
                guard !targets.isEmpty else { return }
                parts[mark.id, default: [:]][number] = (content, targets)
            }
        }

        /// - Parameter sentUpTo: the last seq that was sent; a seq beyond the head counts as the head.
        mutating func close(sentUpTo: UInt64, expiresAt: Timestamp?, now: Timestamp) {
            stored.isOnline = false
            stored.place?.node = nil
            stored.place?.since = now
            stored.sentUpTo = min(max(stored.sentUpTo, sentUpTo), stored.head)
            stored.expiresAt = expiresAt
        }

        var partial: [UInt16: PartialPublication] {
            parts.compactMapValues { parts -> PartialPublication? in
                let sorted = parts.sorted { $0.key < $1.key }
                guard let first = sorted.first else { return nil }
                var partial = PartialPublication(content: first.value.content)
                for (number, part) in sorted {
                    partial.add(part.targets)
                    partial.parts = number + 1
                }
                return partial
            }
        }

        mutating func remove(_ isGone: (QueuedPublication) -> Bool) {
            queue.removeAll { queued in
                guard isGone(queued) else { return false }
                stored.queuedBytes -= queued.weight
                return true
            }
            stored.queuedCount = queue.count + released.count
        }
    }

    mutating func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
        try checkRoom(for: 0)
        var outcomes: [SessionOutcome] = []
        for operation in operations {
            do throws(HermesError) {
                outcomes.append(try apply(operation, now: now))
            } catch {
                outcomes.append(.refused(error))
            }
        }
        return outcomes
    }

    private mutating func apply(_ operation: SessionOperation, now: Timestamp) throws(HermesError) -> SessionOutcome {
        switch operation {
        case .open(let key, let clean, let expiry, let payer, let node):
            let place = node.map { SessionPlace(node: $0, opening: 1, since: now) }
            return .opened(open(key, clean: clean, expiry: expiry, payer: payer, at: place))
        case .remove(let id, let opening):
            try check(id, wasLast: opening)
            remove(id)
            return .done
        case .publish(let publication, let targets, let received, let retains):
            return .published(publish(publication, to: targets, received: received, retains: retains))
        case .move(let move):
            return try self.move(move)
        case .retain(let publication):
            retain(publication)
            return .done
        case .close(let id, let sentUpTo, let expiresAt, let opening):
            try check(id, wasLast: opening)
            return try change(id) { $0.close(sentUpTo: sentUpTo, expiresAt: expiresAt, now: now) }
        case .subscribe(let id, let subscriptions):
            return try change(id) { session in
                for added in subscriptions { session.subscriptions[TopicText(added.filter)] = added.options }
                session.stored.subscriptionsVersion += 1
            }
        case .unsubscribe(let id, let filters):
            return try change(id) { session in
                for filter in filters { session.subscriptions[TopicText(filter)] = nil }
                session.stored.subscriptionsVersion += 1
            }
        case .completed(let id, let seqs):
            let seqs = Set(seqs)
            var count = 0
            _ = try change(id) { session in
                let before = session.released.count + session.queue.count
                session.released.subtract(seqs)
                session.remove { seqs.contains($0.seq) }
                count = before - session.released.count - session.queue.count
            }
            return .completed(count)
        case .released(let id, let seq):
            return try change(id) { session in
                guard session.queue.contains(where: { $0.seq == seq }) else { return }
                session.released.insert(seq)
                session.remove { $0.seq == seq }
            }
        case .receivedReleased(let id, let released):
            return try change(id) { $0.received.remove(released) }
        }
    }

    /// - Parameter opening: the opening that must be the session's last opening; nil if this is not checked.
    private func check(_ id: DurableSessionID, wasLast opening: UInt64?) throws(HermesError) {
        guard let opening, let last = durable[id]?.stored.place?.opening else { return }
        if last != opening { throw StoreRefusals.openedElsewhere }
    }

    private mutating func change(
        _ id: DurableSessionID,
        _ body: (inout Session) -> Void
    ) throws(HermesError) -> SessionOutcome {
        guard var session = durable[id] else { throw StoreRefusals.noSuchSession }
        let before = session.holding
        durable[id] = nil
        body(&session)
        durable[id] = session
        count(from: before, to: session)
        return .done
    }

    /// Counts a change of a session's queue for the source that pays for the queue.
    private func count(from before: Holding, to session: Session) {
        var change = OwnerTally()
        change.add(-before, of: session.stored.payer)
        change.add(session.holding, of: session.stored.payer)
        queues.apply(change)
    }

    private mutating func open(
        _ key: SessionKey,
        clean: Bool,
        expiry: Duration?,
        payer: CommitSource,
        at place: SessionPlace?
    ) -> StoredSession {
        replaceWills(of: key, isClean: clean)
        if clean, let old = durableKeys[key] { remove(old) }
        let id: DurableSessionID
        let wasPresent: Bool
        if let known = durableKeys[key] {
            id = known
            wasPresent = true
        } else {
            lastDurable += 1
            id = DurableSessionID(rawValue: lastDurable)
            wasPresent = false
            durableKeys[key] = id
        }
        var session = durable[id] ?? Session(stored: StoredSession(id: id, key: key))
        if !wasPresent { session.stored.payer = StoredSession.payer(of: key.owner, openedBy: payer) }
        session.stored.isOnline = true
        if var place {
            place.opening += session.stored.place?.opening ?? 0
            session.stored.place = place
        }
        session.stored.expiry = expiry
        session.stored.expiresAt = nil
        durable[id] = session
        var opened = stored(session)
        opened.wasPresent = wasPresent
        opened.released = session.released.sorted()
        opened.received = session.received.sorted()
        opened.partial = session.partial
        return opened
    }

    /// Closes a session after its process has ended. The session's connection has then ended, too.
    mutating func close(_ id: DurableSessionID, now: Timestamp) {
        let expiresAt = durable[id]?.stored.expiry.map { now.advanced(by: $0) }
        durable[id]?.close(sentUpTo: .max, expiresAt: expiresAt, now: now)
    }

    mutating func remove(_ id: DurableSessionID) {
        guard let session = durable.removeValue(forKey: id) else { return }
        var change = OwnerTally()
        change.add(-session.holding, of: session.stored.payer)
        queues.apply(change)
        durableKeys[session.stored.key] = nil
    }

    private mutating func publish(
        _ publication: StoredPublication,
        to targets: [PublicationTarget],
        received: ReceivedMark?,
        retains: Bool
    ) -> [UInt64] {
        let seqs = queue(publication, for: targets)
        let extent = received?.extent(with: targets, seqs)
        if let received, let extent {
            durable[received.session]?.mark(received, extent, PartialPublication.settled(targets, seqs))
        }
        if retains, extent?.isComplete ?? true { retain(publication) }
        return seqs
    }

    private mutating func queue(_ publication: StoredPublication, for targets: [PublicationTarget]) -> [UInt64] {
        targets.map { target in
            guard let stored = durable[target.session]?.stored, stored.queuedCount < settings.maxQueuedMessages,
                stored.queuedBytes < settings.maxQueuedBytes
            else { return 0 }
            let holding = Holding(entries: 1, bytes: target.weight(of: publication))
            guard queues.hasRoom(for: holding, of: stored.payer) else {
                queues.apply(OwnerTally(), refused: 1)
                return 0
            }
            var change = OwnerTally()
            change.add(holding, of: stored.payer)
            queues.apply(change)
            let seq = stored.head + 1
            durable[target.session]?.stored.head = seq
            durable[target.session]?.stored.queuedCount += 1
            durable[target.session]?.stored.queuedBytes += holding.bytes
            durable[target.session]?.queue.append(QueuedPublication(target, seq: seq, publication))
            return seq
        }
    }

    private mutating func move(_ move: QueueMove) throws(HermesError) -> SessionOutcome {
        guard let source = durable[move.session] else { throw StoreRefusals.noSuchSession }
        if case .isOffline = move.condition, source.stored.isOnline {
            return .moved(move.items.map { _ in .stays }, hasEnded: false)
        }
        if case .opened(let opening) = move.condition { try check(move.session, wasLast: opening) }
        var outcomes: [QueueMove.Outcome] = []
        for item in move.items {
            let queue = durable[move.session]?.queue ?? []
            guard let queued = queue.first(where: { $0.seq == item.queued.seq }) else {
                outcomes.append(.gone)
                continue
            }
            var outcome = QueueMove.Outcome.takenOut
            if let target = item.target {
                // The publication is first subtracted from its owner's share. Otherwise an owner with a full share
                // could not move the publication to another queue of its own.
                var leaving = OwnerTally()
                leaving.add(Holding(entries: -1, bytes: -queued.weight), of: source.stored.payer)
                var staying = OwnerTally()
                staying.add(Holding(entries: 1, bytes: queued.weight), of: source.stored.payer)
                queues.apply(leaving)
                let seq = publish(queued.publication, to: [target], received: nil, retains: false)[0]
                queues.apply(staying)
                outcome = seq > 0 ? .queued(seq) : .stays
            }
            if outcome != .stays {
                let before = durable[move.session]?.holding ?? Holding()
                durable[move.session]?.remove { $0.seq == queued.seq }
                if let session = durable[move.session] { count(from: before, to: session) }
            }
            outcomes.append(outcome)
        }
        guard let behind = move.endsBehind, !outcomes.contains(.stays),
            durable[move.session]?.queue.contains(where: { $0.share != nil && $0.seq > behind }) == false
        else { return .moved(outcomes, hasEnded: false) }
        remove(move.session)
        return .moved(outcomes, hasEnded: true)
    }

    private mutating func retain(_ publication: StoredPublication) {
        retained[publication.topic] = publication.isEmpty ? nil : publication
    }

    private func stored(_ session: Session) -> StoredSession {
        var stored = session.stored
        stored.subscriptions = session.subscriptions.map { filter, options in
            DurableSubscription(filter: filter.rawValue, options: options)
        }
        stored.ownerName =
            switch stored.key.owner {
            case .anonymous: ""
            case .account(let user): records[user]?.stored.account.nickName.key ?? ""
            case .subject(let name): name
            }
        return stored
    }

    /// Records the current ends of a renamed account's queues. The publications up to these ends were queued under the
    /// old name.
    mutating func markRenamed(_ user: UserID) {
        for (id, session) in durable where session.stored.key.owner == .account(user) {
            durable[id]?.stored.renamedAt = session.stored.head
        }
    }

    func storedSessions() -> [StoredSession] { durable.values.map { stored($0) } }

    func storedSessions(of ids: [DurableSessionID]) -> [StoredSession] {
        ids.compactMap { id in durable[id].map { stored($0) } }
    }

    func storedSessions(after id: DurableSessionID?, limit: Int) -> [StoredSession] {
        let behind = durable.keys.filter { key in id.map { key > $0 } ?? true }.sorted()
        return storedSessions(of: Array(behind.prefix(max(0, limit))))
    }

    func queued(
        of id: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int,
        isSharedOnly: Bool = false
    ) -> QueuePage {
        var page: [QueuedPublication] = []
        var bytes = 0
        for queued in durable[id]?.queue ?? [] where queued.seq > seq && (!isSharedOnly || queued.share != nil) {
            guard page.count < limit, bytes < maxBytes else { break }
            bytes += queued.weight
            page.append(queued)
        }
        return QueuePage(page, upTo: page.last?.seq ?? seq, isAtEnd: page.count < limit && bytes < maxBytes)
    }

    mutating func purgeSessions(
        now: Timestamp,
        limit: Int,
        _ sentUpTo: (DurableSessionID) -> UInt64
    ) -> SessionPurge {
        var purge = SessionPurge()
        for (id, session) in durable where purge.rows < limit {
            guard session.queue.contains(where: { $0.publication.hasExpired(at: now) }) else { continue }
            let sent = max(session.stored.sentUpTo, sentUpTo(id))
            let expired = session.queue.lazy.filter { $0.seq > sent && $0.publication.hasExpired(at: now) }
            let seqs = Set(expired.map(\.seq).prefix(limit - purge.rows))
            guard !seqs.isEmpty else { continue }
            purge.rows += seqs.count
            purge.expired[id] = seqs.count
            durable[id]?.remove { seqs.contains($0.seq) }
            if let now = durable[id] { count(from: session.holding, to: now) }
        }
        for (topic, publication) in retained where purge.rows < limit && publication.hasExpired(at: now) {
            retained[topic] = nil
            purge.rows += 1
        }
        return purge
    }
}
