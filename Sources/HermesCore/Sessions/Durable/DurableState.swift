// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What ``DurableSessions`` guards: who has which session, and what each is subscribed to.
///
/// Pure: it decides and says what is to be done outside the lock (``Action``).
struct DurableState {
    /// A connection that wants a session.
    struct Applicant: Sendable {
        let attachment: any DurableAttachment
        let clean: Bool
        /// Nil: it never ends; zero: with the connection.
        let expiry: Duration?
        let completion: @Sendable (Result<DurableOpening, HermesError>) -> Void
    }

    /// The one place that a key has.
    struct Seat {
        enum Phase {
            case vacant
            /// Its commit is on the way.
            case opening(Applicant)
            case occupied(any DurableAttachment)
        }

        var phase = Phase.vacant
        /// Waits for the one before to leave.
        var waiting: Applicant?
        var session: DurableSessionID
    }

    /// A session that the store has.
    struct Record {
        let key: SessionKey
        let load = DurableLoad()
        var subscriptions: Set<TopicText> = []
        var expiresAt: Timestamp?
        var head: UInt64 = 0
        var attachment: (any DurableAttachment)?
        /// It has ended; the store may not know yet.
        var hasEnded = false
    }

    enum Action: Sendable {
        case replace(any DurableAttachment)
        case submit(SessionOperation)
        /// Submits what makes room for the applicant, or finds its session; the answer is for ``opened(_:_:)``.
        case open(SessionKey, SessionOperation)
        case succeed(Applicant, DurableOpening)
        case fail(Applicant, HermesError)
        /// A session without a connection is no more.
        case ended(SessionKey)
    }

    let maxSessions: Int
    private(set) var seats = DurableSeats()
    private(set) var records: [DurableSessionID: Record] = [:]
    /// The keys of sessions that are not stored.
    private var transients: [DurableSessionID: SessionKey] = [:]
    private var lastTransient: Int64 = 0
    var index = DurableIndex()
    /// Publications that were dropped because a queue was full.
    private(set) var dropped: UInt64 = 0
    /// How many stored sessions have a connection.
    private(set) var online = 0
    /// No session ends before.
    private var nextExpiry = Timestamp(rawValue: .max)

    init(maxSessions: Int) { self.maxSessions = maxSessions }

    // MARK: Coming and going

    mutating func attach(_ key: SessionKey, _ applicant: Applicant) -> [Action] {
        guard var seat = seats[key] else { return open(key, applicant, in: Seat(session: .none)) }
        switch seat.phase {
        case .vacant:
            return open(key, applicant, in: seat)
        case .opening(let other):
            defer { seats[key] = seat }
            return wait(applicant, in: &seat, behind: other.attachment)
        case .occupied(let other):
            defer { seats[key] = seat }
            return wait(applicant, in: &seat, behind: other)
        }
    }

    private func wait(
        _ applicant: Applicant,
        in seat: inout Seat,
        behind other: any DurableAttachment
    ) -> [Action] {
        defer { seat.waiting = applicant }
        guard let superseded = seat.waiting else { return [.replace(other)] }
        return [.replace(superseded.attachment), .fail(superseded, Self.takenOver)]
    }

    private mutating func open(_ key: SessionKey, _ applicant: Applicant, in seat: Seat) -> [Action] {
        var seat = seat
        seat.waiting = nil
        let known = seat.session.isStored ? records[seat.session] : nil
        let isClean = applicant.clean || known?.hasEnded ?? false
        if applicant.expiry == .zero && (known == nil || isClean) {
            if known == nil { return [occupy(key, applicant, in: seat)] }
            seat.phase = .opening(applicant)
            seats[key] = seat
            return [.open(key, .remove(seat.session))]
        }
        guard known != nil || records.count < maxSessions else {
            seats[key] = nil
            return [.fail(applicant, Self.tooMany)]
        }
        seat.phase = .opening(applicant)
        seats[key] = seat
        return [.open(key, .open(key, clean: isClean, expiry: applicant.expiry))]
    }

    /// Gives the seat to a session that is not stored.
    private mutating func occupy(_ key: SessionKey, _ applicant: Applicant, in seat: Seat) -> Action {
        lastTransient -= 1
        var seat = seat
        seat.session = DurableSessionID(rawValue: lastTransient)
        seat.phase = .occupied(applicant.attachment)
        transients[seat.session] = key
        seats[key] = seat
        return .succeed(applicant, DurableOpening(transient: seat.session))
    }

    /// The commit of ``Action/open(_:_:)`` is done.
    mutating func opened(_ key: SessionKey, _ result: Result<SessionOutcome, HermesError>) -> [Action] {
        guard var seat = seats[key], case .opening(let applicant) = seat.phase else { return [] }
        switch result {
        case .failure(let error):
            seat.phase = .vacant
            let waiting = seat.waiting
            seats[key] = seat.session.isStored || waiting != nil ? seat : nil
            return [.fail(applicant, error)] + (waiting.map { open(key, $0, in: seat) } ?? [])
        case .success(.opened(let session)):
            var actions: [Action] = []
            if seat.session.isStored, seat.session != session.id { actions += forget(seat.session) }
            seat.session = session.id
            seat.phase = .occupied(applicant.attachment)
            seats[key] = seat
            if records[session.id] == nil { insert(session) }
            online += 1
            records[session.id]?.attachment = applicant.attachment
            records[session.id]?.expiresAt = nil
            records[session.id]?.head = session.head
            records[session.id]?.load.isOnline.store(true, ordering: .relaxed)
            records[session.id]?.load.queued.store(session.queuedCount, ordering: .relaxed)
            return actions + [.succeed(applicant, DurableOpening(session))]
        case .success:
            // The session that was there is removed.
            return forget(seat.session) + [occupy(key, applicant, in: seat)]
        }
    }

    /// - Parameter expiresAt: nil: never.
    mutating func detach(
        _ id: DurableSessionID,
        _ attachment: any DurableAttachment,
        sentUpTo: UInt64,
        expiresAt: Timestamp?,
        ends: Bool
    ) -> [Action] {
        guard let key = records[id]?.key ?? transients[id], var seat = seats[key], seat.session == id,
            case .occupied(let occupant) = seat.phase, occupant === attachment
        else { return [] }
        seat.phase = .vacant
        var actions: [Action] = []
        if id.isStored {
            online -= 1
            records[id]?.attachment = nil
            records[id]?.load.isOnline.store(false, ordering: .relaxed)
            records[id]?.expiresAt = expiresAt
            nextExpiry = min(nextExpiry, expiresAt ?? nextExpiry)
            if ends {
                records[id]?.hasEnded = true
                unsubscribe(id, (records[id]?.subscriptions ?? []).map(\.rawValue))
                actions.append(.submit(.remove(id)))
            } else {
                actions.append(.submit(.close(id, sentUpTo: sentUpTo, expiresAt: expiresAt)))
            }
        } else {
            transients[id] = nil
            seat.session = .none
        }
        guard let waiting = seat.waiting else {
            seats[key] = id.isStored ? seat : nil
            return actions
        }
        return actions + open(key, waiting, in: seat)
    }

    // MARK: Sessions that end

    /// Those without a connection whose time is over, and those whose removal has to be tried again.
    mutating func expire(now: Timestamp, limit: Int) -> [Action] {
        guard nextExpiry <= now else { return [] }
        nextExpiry = Timestamp(rawValue: .max)
        var due: [DurableSessionID] = []
        for (id, record) in records {
            guard record.attachment == nil, let expiresAt = record.expiresAt else { continue }
            // One that is being removed is looked at again until it is.
            nextExpiry = min(nextExpiry, expiresAt)
            if expiresAt <= now, due.count < limit { due.append(id) }
        }
        var actions: [Action] = []
        for id in due {
            guard let record = records[id], let seat = seats[record.key], seat.session == id, case .vacant = seat.phase
            else { continue }
            if !record.hasEnded {
                records[id]?.hasEnded = true
                unsubscribe(id, record.subscriptions.map(\.rawValue))
                actions.append(.ended(record.key))
            }
            actions.append(.submit(.remove(id)))
        }
        return actions
    }

    // MARK: Owners

    /// The connections of an owner that have a session or wait for one; `matches` is asked about their client ids.
    func attachments(of owner: String, where matches: (String) -> Bool) -> [any DurableAttachment] {
        var found: [any DurableAttachment] = []
        for key in seats.keys(of: owner) where matches(key.clientID) {
            guard let seat = seats[key] else { continue }
            switch seat.phase {
            case .vacant: break
            case .opening(let applicant): found.append(applicant.attachment)
            case .occupied(let attachment): found.append(attachment)
            }
            if let waiting = seat.waiting { found.append(waiting.attachment) }
        }
        return found
    }

    /// Subscriptions to one topic, without wildcards, of the sessions of an owner that have no connection.
    func subscriptions(of owner: String, to topic: TopicName) -> [(id: DurableSessionID, filters: [String])] {
        seats.keys(of: owner).compactMap { key in
            guard let id = seats[key]?.session, let record = records[id], record.attachment == nil, !record.hasEnded
            else { return nil }
            let filters = record.subscriptions.map(\.rawValue).filter { text in
                guard let filter = DurableIndex.parse(text)?.filter else { return false }
                return filter.rawValue == topic.rawValue
            }
            return filters.isEmpty ? nil : (id, filters)
        }
    }

    /// Ends the sessions of an owner that have no connection.
    mutating func endVacant(of owner: String, now: Timestamp) -> [Action] {
        var isAny = false
        for key in seats.keys(of: owner) {
            guard let seat = seats[key], case .vacant = seat.phase, seat.session.isStored else { continue }
            records[seat.session]?.expiresAt = now
            nextExpiry = min(nextExpiry, now)
            isAny = true
        }
        return isAny ? expire(now: now, limit: .max) : []
    }

    /// The store has removed a session.
    mutating func removed(_ id: DurableSessionID) {
        guard let record = records.removeValue(forKey: id) else { return }
        guard let seat = seats[record.key], seat.session == id, case .vacant = seat.phase else { return }
        seats[record.key] = nil
    }

    /// A session that another one with its key has followed.
    private mutating func forget(_ id: DurableSessionID) -> [Action] {
        guard let record = records[id] else { return [] }
        unsubscribe(id, record.subscriptions.map(\.rawValue))
        records[id] = nil
        return record.hasEnded ? [] : [.ended(record.key)]
    }

    // MARK: Subscriptions

    /// A session that the store had at the start.
    mutating func load(_ session: StoredSession, expiresAt: Timestamp?) {
        seats[session.key] = Seat(session: session.id)
        insert(session)
        records[session.id]?.expiresAt = expiresAt
        nextExpiry = min(nextExpiry, expiresAt ?? nextExpiry)
        records[session.id]?.load.queued.store(session.queuedCount, ordering: .relaxed)
    }

    private mutating func insert(_ session: StoredSession) {
        var record = Record(key: session.key)
        record.head = session.head
        records[session.id] = record
        subscribe(session.id, session.subscriptions)
    }

    mutating func subscribe(_ id: DurableSessionID, _ subscriptions: [DurableSubscription]) {
        guard let record = records[id], !record.hasEnded else { return }
        for subscription in subscriptions where index.insert(id, subscription) {
            records[id]?.subscriptions.insert(TopicText(subscription.filter))
        }
    }

    mutating func unsubscribe(_ id: DurableSessionID, _ filters: some Sequence<String>) {
        guard records[id] != nil else { return }
        for filter in filters {
            index.remove(id, filter)
            records[id]?.subscriptions.remove(TopicText(filter))
        }
    }

    // MARK: Deliveries

    /// Notes what a commit did; returns what is to be handed over.
    mutating func committed(
        _ operations: [SessionOperation],
        _ outcomes: [SessionOutcome]
    ) -> [(attachment: any DurableAttachment, publications: [QueuedPublication])] {
        var deliveries: [(attachment: any DurableAttachment, publications: [QueuedPublication])] = []
        var positions: [DurableSessionID: Int] = [:]
        for (operation, outcome) in zip(operations, outcomes) {
            if case .completed(let id, let seqs) = operation {
                records[id]?.load.queued.subtract(seqs.count, ordering: .relaxed)
            }
            guard case .publish(let publication, let targets, _, _) = operation, case .published(let seqs) = outcome
            else { continue }
            for (target, seq) in zip(targets, seqs) {
                guard let index = records.index(forKey: target.session) else { continue }
                guard seq > 0 else {
                    dropped += 1
                    continue
                }
                // Not above it: queued before this connection opened the session; it knows that it is there.
                guard seq > records.values[index].head else { continue }
                records.values[index].head = seq
                records.values[index].load.queued.add(1, ordering: .relaxed)
                guard let attachment = records.values[index].attachment else { continue }
                let queued = QueuedPublication(target, seq: seq, publication)
                if let position = positions[target.session] {
                    deliveries[position].publications.append(queued)
                } else {
                    positions[target.session] = deliveries.count
                    deliveries.append((attachment, [queued]))
                }
            }
        }
        return deliveries
    }

    private static let takenOver = HermesError(.forbidden, "Another connection has taken the session over.")
    private static let tooMany = HermesError(
        .overloaded,
        "The server has as many durable sessions as it may have. Connect without one, or remove old ones.",
        retryAfter: .seconds(60)
    )
}

extension DurableSessionID {
    /// No session.
    static let none = Self(rawValue: 0)
}

extension QueuedPublication {
    init(_ target: PublicationTarget, seq: UInt64, _ publication: StoredPublication) {
        self.init(
            seq: seq,
            qos: target.qos,
            identifiers: target.identifiers,
            retain: target.retain,
            publication: publication
        )
    }
}
