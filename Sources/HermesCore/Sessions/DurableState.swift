// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The state of ``DurableSessions``: the sessions with their subscriptions, and the connections that have them.
///
/// It does no I/O. It decides what to do, and returns the work that must be done outside the lock (``Action``). If
/// there are several nodes, "the record" means the content of the store that all nodes share.
struct DurableState {
    /// A session that is not stored.
    struct Transient {
        let key: SessionKey
        /// The time at which the connection requested the session.
        let at: Timestamp
        /// Whether the connection requested a clean session, without anything from an earlier one.
        let isClean: Bool
    }

    /// A stored session.
    struct Record {
        let key: SessionKey
        let payer: CommitSource
        let load: DurableLoad
        var subscriptions: Set<TopicText> = []
        /// The shared subscriptions among ``subscriptions``.
        var sharedSubscriptions: Set<TopicText> = []
        /// The ``StoredSession/subscriptionsVersion`` of the subscriptions when they were last read.
        var subscriptionsVersion: UInt64 = 0
        /// Where the session is open according to the record; nil if this process is alone.
        var place: SessionPlace?
        /// Whether this process has queued publications for the session. When this process learns that another process
        /// has opened the session, it tells the other process about these publications and resets the flag.
        var hasQueued = false
        var head: UInt64 = 0
        /// The last seq that may have been sent.
        var sentUpTo: UInt64 = 0
        var attachment: (any DurableAttachment)?
        /// Whether the session has ended; the store may not know it yet.
        var hasEnded = false
        /// Whether the session ends when the end of its connection is stored, unless another node has opened it by
        /// then.
        var endsOnceClosed = false
        /// The time at which the session expires, as agreed with its last connection to this process; nil if it never
        /// expires.
        var expiresAt: Timestamp?
        /// Whether the session's removal is under way.
        var isBeingRemoved = false
        /// Whether the session's queue may contain messages from shared subscriptions. The session's first shared
        /// subscription sets this flag, and the flag stays set. A message may be in the store before this process has
        /// applied the commit. It may also stay there after the subscription has ended.
        var mayHoldShared = false
        /// The client's own QoS 2 publications that are stored for only some of their targets, by packet identifier.
        var partial: [UInt16: PartialPublication] = [:]
        /// The time from which other members can get the session's messages from shared subscriptions, if the session
        /// has no connection.
        var redistributesAt: Timestamp?
        /// Whether a pass of ``DurableSessions/redistribute(now:isOnDuty:most:)`` over the queue waits or runs.
        var isRedistributing = false
        /// The time between the last pass over the queue and the next one.
        var redistributionPause = DurableState.redistributionInterval

        init(key: SessionKey, payer: CommitSource) {
            self.key = key
            self.payer = payer
            load = DurableLoad(owner: payer)
        }
    }

    enum Action: Sendable {
        case replace(any DurableAttachment)
        /// Submit the end of a connection; pass the result to ``closed(_:_:)``.
        case close(DurableSessionID, SessionOperation, CommitSource)
        /// Remove a session; pass the result to ``removed(_:_:)``. If the session may hold messages from shared
        /// subscriptions, other members must get them first. If `opening` is not nil, the session is removed only if no
        /// other node has opened it after that opening.
        case remove(DurableSessionID, sentUpTo: UInt64, mayHoldShared: Bool, opening: UInt64?)
        /// Find or create the applicant's session; pass the result to ``opened(_:_:)``.
        case open(SessionKey, SessionOperation, CommitSource)
        case succeed(Applicant, DurableOpening)
        case fail(Applicant, HermesError)
        /// A session without a connection has ended.
        case ended(SessionKey)
        /// This process has changed a session in the record.
        case changed(DurableSessionID)
        /// A connection has a session that is not stored.
        case attached(SessionKey, Timestamp)
        /// Other nodes have queued publications for a connection, up to this seq.
        case advance(any DurableAttachment, UInt64)
        /// This process may have an outdated state of the session, and must read the session again.
        case outdated(DurableSessionID)
    }

    /// The identity of this process among several nodes; nil if it is alone.
    let node: NodeIdentity?

    private(set) var quota: DurableQuota
    var seats = DurableSeats()
    var records: [DurableSessionID: Record] = [:]
    private(set) var transients: [DurableSessionID: Transient] = [:]
    private var lastTransient: Int64 = 0
    var index: DurableIndex
    var routes = DurableRoutes()
    /// The filters of ended sessions that are still in the index (``trimIndex()``).
    var leaving: [(id: DurableSessionID, filters: [TopicText])] = []
    /// Publications that were dropped because a queue was full.
    var dropped: UInt64 = 0
    /// Publications that moved to another member of a shared subscription.
    var handedOver: UInt64 = 0
    /// Messages that a member without a kept session returned while the store failed, each with the text of its shared
    /// subscription.
    var unplaced: [(publication: StoredPublication, share: String)] = []
    /// Messages that could not be passed on because the store failed.
    var delayedMoves: [DurableSessionID: DelayedMoves] = [:]
    /// The number of stored sessions with a connection.
    private(set) var online = 0
    /// The sessions that have no connection and expire at some time, and the sessions whose removal must be tried
    /// again.
    private var expiries = DueKeys<DurableSessionID, Timestamp>()
    /// The sessions that have no connection, expire at some time, and come from an earlier process or from another
    /// node. The clock may have been wrong when their expiry was determined, or may be wrong now.
    private var inherited = DueKeys<DurableSessionID, Timestamp>()
    /// The sessions without a connection that the store counts as online, because it could not record the end of the
    /// connection. Always empty if there are several nodes.
    var unclosed = DueKeys<DurableSessionID, Timestamp>()
    /// The sessions that have shared subscriptions but no connection. Messages that wait for these sessions can go to
    /// other members of the subscriptions.
    var absentSharing: Set<DurableSessionID> = []

    /// The callers that wait until the last session of an owner is removed.
    var farewells = DurableFarewells()

    /// The sessions that this process has changed since it began to read the record; nil if the record is not being
    /// read.
    var changedWhileReading: Set<DurableSessionID>?
    /// The sessions without a ``Record`` that this process is removing, because their clients have requested clean
    /// sessions.
    var discarding: Set<DurableSessionID> = []

    init(_ settings: DurableSettings, shapes: ShapeBudget = ShapeBudget(), node: NodeIdentity? = nil) {
        self.node = node
        quota = DurableQuota(settings)
        index = DurableIndex(shapes: shapes)
    }

    // MARK: Attaching and detaching

    mutating func attach(_ key: SessionKey, _ applicant: Applicant) -> [Action] {
        guard var seat = seats[key] else { return open(key, applicant, in: Seat(session: .none)) }
        if let newest = seat.newest, newest.order > applicant.attachment.order {
            return [.fail(applicant, DurableSessions.takenOver)]
        }
        switch seat.phase {
        case .vacant:
            return open(key, applicant, in: seat)
        case .closing:
            defer { seats[key] = seat }
            return wait(applicant, in: &seat, behind: nil)
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
        behind other: (any DurableAttachment)?
    ) -> [Action] {
        defer { seat.waiting = applicant }
        guard let superseded = seat.waiting else { return other.map { [.replace($0)] } ?? [] }
        return [.replace(superseded.attachment), .fail(superseded, DurableSessions.takenOver)]
    }

    private mutating func open(_ key: SessionKey, _ applicant: Applicant, in seat: Seat) -> [Action] {
        var seat = seat
        seat.waiting = nil
        let known = seat.session.isStored ? records[seat.session] : nil
        let isEnding = known.map { $0.hasEnded || $0.isBeingRemoved } ?? false
        if known != nil, applicant.clean || isEnding {
            // First, other members get the old session's messages from shared subscriptions, and the old session is
            // removed.
            seat.phase = .opening(applicant)
            seats[key] = seat
            return remove(seat.session, evenIfReopened: applicant.clean || seat.isOwnerGone)
        }
        if applicant.expiry == .zero, known == nil { return occupy(key, applicant, in: seat) }
        let payer = StoredSession.payer(of: key.owner, openedBy: applicant.attachment.source)
        if known == nil, let error = quota.takeSession(of: payer) {
            seats[key] = nil
            return [.fail(applicant, error)]
        }
        seat.phase = .opening(applicant)
        seats[key] = seat
        let operation = SessionOperation.open(
            key,
            clean: applicant.clean,
            expiry: applicant.expiry,
            payer: payer,
            on: node
        )
        return [.open(key, operation, applicant.attachment.source)]
    }

    /// Gives the seat to a session that is not stored.
    private mutating func occupy(_ key: SessionKey, _ applicant: Applicant, in seat: Seat) -> [Action] {
        lastTransient -= 1
        var seat = seat
        seat.session = DurableSessionID(rawValue: lastTransient)
        seat.phase = .occupied(applicant.attachment)
        seat.isReplaced = false
        transients[seat.session] = Transient(key: key, at: applicant.at, isClean: applicant.clean)
        seats[key] = seat
        let success = Action.succeed(applicant, DurableOpening(transient: seat.session))
        return node == nil ? [success] : [.attached(key, applicant.at), success]
    }

    /// Continues after the commit of ``Action/open(_:_:_:)``.
    mutating func opened(_ key: SessionKey, _ result: Result<SessionOutcome, HermesError>) -> [Action] {
        guard let seat = seats[key], case .opening(let applicant) = seat.phase else { return [] }
        switch result {
        case .success(.opened(let session)):
            return opened(session, key, seat, for: applicant)
        case .success:
            assertionFailure("the store did not open a session")
            return openFailed(key, seat, applicant, HermesError(.internalError, "The store did not open the session."))
        case .failure(let error):
            return openFailed(key, seat, applicant, error)
        }
    }

    /// Gives the seat to a session that the store has found or created.
    private mutating func opened(
        _ session: StoredSession,
        _ key: SessionKey,
        _ seat: Seat,
        for applicant: Applicant
    ) -> [Action] {
        var seat = seat
        var session = session
        // If the store could not record the end of the last connection, only this process knows what was sent. The seqs
        // of a new session begin again, so nothing that is known about an earlier session counts.
        if session.wasPresent, let known = records[session.id]?.sentUpTo {
            session.sentUpTo = max(session.sentUpTo, known)
        }
        let payer = StoredSession.payer(of: key.owner, openedBy: applicant.attachment.source)
        var actions: [Action] = []
        if seat.session.isStored, seat.session != session.id, let record = records[seat.session] {
            forget(seat.session)
            quota.add(sessions: 1, of: payer)
            if !record.hasEnded { actions.append(.ended(record.key)) }
        }
        seat.session = session.id
        seat.phase = .occupied(applicant.attachment)
        seat.isReplaced = false
        seats[key] = seat
        let knownHead = records[session.id]?.head ?? 0
        if records[session.id] == nil {
            finishLeaving(session.id)
            insert(session, payer: payer)
        } else {
            reopened(session)
        }
        online += 1
        records[session.id]?.attachment = applicant.attachment
        records[session.id]?.place = session.place
        actions += changed(session.id)
        setExpiry(of: session.id, to: nil)
        unclosed.remove(session.id)
        records[session.id]?.redistributesAt = nil
        absentSharing.remove(session.id)
        records[session.id]?.head = max(knownHead, session.head)
        records[session.id]?.partial = session.partial
        records[session.id]?.sentUpTo = session.sentUpTo
        records[session.id]?.load.setReader(applicant.attachment.reader)
        records[session.id]?.load.isOnline.store(true, ordering: .relaxed)
        records[session.id]?.load.read(session.queuedCount)
        actions.append(.succeed(applicant, DurableOpening(session)))
        // Another node has already told this node about newer publications.
        if knownHead > session.head { actions.append(.advance(applicant.attachment, knownHead)) }
        return actions
    }

    /// Frees the seat, and lets the connection that waits for it open the session.
    private mutating func openFailed(
        _ key: SessionKey,
        _ seat: Seat,
        _ applicant: Applicant,
        _ error: HermesError
    ) -> [Action] {
        var seat = seat
        let waiting = seat.waiting
        seat.phase = .vacant
        seats[key] = seat.session.isStored || waiting != nil ? seat : nil
        if !seat.session.isStored {
            quota.add(sessions: -1, of: StoredSession.payer(of: key.owner, openedBy: applicant.attachment.source))
        }
        // The opening may have been stored in spite of the error.
        let actions = (seat.session.isStored ? outdated(seat.session) : []) + [.fail(applicant, error)]
        return actions + (waiting.map { open(key, $0, in: seat) } ?? [])
    }

    /// - Parameter expiresAt: the time at which the session expires; nil if it never expires.
    mutating func detach(
        _ id: DurableSessionID,
        _ attachment: any DurableAttachment,
        sentUpTo: UInt64,
        expiresAt: Timestamp?,
        redistributesAt: Timestamp? = nil,
        ends: Bool
    ) -> [Action] {
        guard let key = records[id]?.key ?? transients[id]?.key, var seat = seats[key], seat.session == id,
            case .occupied(let occupant) = seat.phase, occupant === attachment
        else { return [] }
        if id.isStored {
            online -= 1
            records[id]?.attachment = nil
            records[id]?.load.isOnline.store(false, ordering: .relaxed)
            let ends = ends || seat.isOwnerGone
            setExpiry(of: id, to: expiresAt)
            let sentBefore = records[id]?.sentUpTo ?? 0
            records[id]?.sentUpTo = max(sentBefore, sentUpTo)
            records[id]?.redistributesAt = redistributesAt
            records[id]?.redistributionPause = Self.redistributionInterval
            records[id]?.expiresAt = expiresAt
            seat.phase = .closing
            seats[key] = seat
            if ends {
                records[id]?.endsOnceClosed = true
                if node == nil { markEnded(id) }
            } else if records[id]?.sharedSubscriptions.isEmpty == false {
                absentSharing.insert(id)
            }
            // A session that ends is first closed in the store. So the store has recorded the end of the connection
            // even if the removal of the session fails.
            return close(id, sentUpTo: sentUpTo, expiresAt: expiresAt, of: attachment.source)
        }
        seat.phase = .vacant
        transients[id] = nil
        seat.session = .none
        guard let waiting = seat.waiting else {
            seats[key] = nil
            return []
        }
        return open(key, waiting, in: seat)
    }

    /// Continues after the commit of ``Action/close(_:_:_:)``. If the commit failed, the store counts the session as
    /// online until a later commit succeeds (``closeUnclosed(now:)``) or the session is opened again. This
    /// process still ends the session when it expires.
    mutating func closed(_ id: DurableSessionID, _ error: HermesError? = nil) -> [Action] {
        // The error `openedElsewhere` means that nothing was changed, because another node has opened the session
        // meanwhile.
        if error?.code != StoreRefusals.openedElsewhere.code, records[id]?.endsOnceClosed == true { markEnded(id) }
        records[id]?.endsOnceClosed = false
        guard let record = records[id], var seat = seats[record.key], seat.session == id, case .closing = seat.phase
        else { return [] }
        seat.phase = .vacant
        seats[record.key] = seat
        if let error { keepUnclosed(id, error) }
        let actions = (error == nil ? changed(id) : []) + outdated(id)
        if let waiting = seat.waiting { return actions + open(record.key, waiting, in: seat) }
        // The client may have opened the session on another node by now.
        return record.hasEnded ? actions + remove(id, evenIfReopened: seat.isOwnerGone) : actions
    }

    // MARK: Sessions that end

    /// Ends expired sessions, and retries failed removals and failed closes of sessions.
    ///
    /// - Parameters:
    ///   - isClockConfirmed: whether the clock can be trusted. If not, sessions from an earlier process or from another
    ///     node do not expire.
    ///   - isOnDuty: whether this node ends the expired sessions of all nodes. If not, another node ends them.
    mutating func expire(
        now: Timestamp,
        isClockConfirmed: Bool = true,
        isOnDuty: Bool = true,
        limit: Int
    ) -> [Action] {
        let mayEndInherited = isClockConfirmed && isOnDuty
        var actions: [Action] = []
        // The sessions for which the end of the last connection is being stored, or that are about to get a new
        // connection.
        var again: [DurableSessionID] = []
        for _ in 0..<limit {
            guard let id = expiries.popDue(now: now) ?? (mayEndInherited ? inherited.popDue(now: now) : nil) else {
                break
            }
            guard let record = records[id], record.attachment == nil else { continue }
            guard let seat = seats[record.key], seat.session == id, case .vacant = seat.phase else {
                again.append(id)
                continue
            }
            guard isOnDuty || record.hasEnded else {
                setInheritedExpiry(of: id, to: now)
                continue
            }
            guard record.hasEnded || !isOpenElsewhere(record) else { continue }
            actions += remove(id, evenIfReopened: false)
        }
        for id in again { setExpiry(of: id, to: now) }
        return actions + closeUnclosed(now: now)
    }

    /// Marks a session as ended, so that it gets no more publications.
    mutating func markEnded(_ id: DurableSessionID) {
        guard let record = records[id], !record.hasEnded else { return }
        records[id]?.hasEnded = true
        records[id]?.load.hasEnded.store(true, ordering: .relaxed)
        leaveAll(id)
        absentSharing.remove(id)
    }

    /// Begins to remove a session without a connection. If the removal fails,
    /// ``expire(now:isClockConfirmed:isOnDuty:limit:)`` tries it again.
    ///
    /// - Parameter evenIfReopened: whether the session is removed even if another node has opened it meanwhile.
    mutating func remove(_ id: DurableSessionID, evenIfReopened: Bool = true) -> [Action] {
        guard let record = records[id], !record.isBeingRemoved else { return [] }
        // If the removal depends on the record, the session still gets publications until the record has decided.
        let isCertain = evenIfReopened || node == nil
        if isCertain { markEnded(id) }
        records[id]?.isBeingRemoved = true
        setExpiry(of: id, to: nil)
        unclosed.remove(id)
        let removal = Action.remove(
            id,
            sentUpTo: record.sentUpTo,
            mayHoldShared: mayHoldShared(record),
            opening: evenIfReopened ? nil : record.place?.opening
        )
        return record.hasEnded || !isCertain ? [removal] : [.ended(record.key), removal]
    }

    /// Continues after the store has removed a session or has failed to remove it.
    mutating func removed(_ id: DurableSessionID, _ error: HermesError? = nil) -> [Action] {
        discarding.remove(id)
        guard let record = records[id] else { return changed(id) }
        records[id]?.isBeingRemoved = false
        guard error?.code == StoreRefusals.openedElsewhere.code else {
            let hasEndedNow = error == nil && !record.hasEnded
            let actions = (error == nil ? changed(id) : []) + (hasEndedNow ? [.ended(record.key)] : [])
            return actions + removed(id, record, error)
        }
        // If this process counts the session as ended, it forgets the session and then reads it again from the record.
        guard !record.hasEnded else { return outdated(id) + removed(id, record, nil) }
        guard let seat = seats[record.key], seat.session == id, case .opening(let applicant) = seat.phase else {
            return outdated(id)
        }
        return outdated(id) + open(record.key, applicant, in: seat, then: seat.waiting)
    }

    private mutating func open(
        _ key: SessionKey,
        _ applicant: Applicant,
        in seat: Seat,
        then waiting: Applicant?
    ) -> [Action] {
        let actions = open(key, applicant, in: seat)
        // The waiting attachment is newer, so it takes the session over.
        return actions + (waiting.map { attach(key, $0) } ?? [])
    }

    private mutating func removed(_ id: DurableSessionID, _ record: Record, _ error: HermesError?) -> [Action] {
        if let error {
            farewells.fail(record.key.owner, error)
            if record.attachment == nil { setExpiry(of: id, to: Self.longAgo) }
        } else {
            forget(id)
        }
        guard var seat = seats[record.key], seat.session == id else { return [] }
        switch (seat.phase, error) {
        case (.occupied, _), (.closing, _):
            return []
        case (.vacant, nil):
            seats[record.key] = nil
            return []
        case (.vacant, .some):
            return []
        case (.opening(let applicant), nil):
            seat.session = .none
            return open(record.key, applicant, in: seat, then: seat.waiting)
        case (.opening(let applicant), .some(let error)):
            seat.phase = .vacant
            let waiting = seat.waiting
            seat.waiting = nil
            seats[record.key] = seat
            return [.fail(applicant, error)] + (waiting.map { open(record.key, $0, in: seat) } ?? [])
        }
    }

    /// Forgets a removed session.
    mutating func forget(_ id: DurableSessionID) {
        guard let record = records[id] else { return }
        leaveAll(id)
        absentSharing.remove(id)
        quota.add(sessions: -1, of: record.payer)
        setExpiry(of: id, to: nil)
        unclosed.remove(id)
        records[id]?.load.hasEnded.store(true, ordering: .relaxed)
        records[id] = nil
    }

    /// - Parameter expiresAt: the time at which the session expires; nil if it has a connection or stays forever.
    private mutating func setExpiry(of id: DurableSessionID, to expiresAt: Timestamp?) {
        inherited.remove(id)
        if let expiresAt { expiries.set(id, dueAt: expiresAt) } else { expiries.remove(id) }
    }

    /// Sets the expiry of a session whose expiry another process has determined.
    mutating func setInheritedExpiry(of id: DurableSessionID, to expiresAt: Timestamp?) {
        setExpiry(of: id, to: nil)
        if let expiresAt { inherited.set(id, dueAt: expiresAt) }
    }

    static let longAgo = Timestamp(rawValue: 0)

    // MARK: Subscriptions

    /// Adds a session that was read from the store.
    mutating func load(_ session: StoredSession, expiresAt: Timestamp?, redistributesAt: Timestamp? = nil) {
        seats[session.key] = Seat(session: session.id)
        let payer = StoredSession.payer(of: session.key.owner, openedBy: session.payer)
        quota.add(sessions: 1, of: payer)
        insert(session, payer: payer)
        if let expiresAt { inherited.set(session.id, dueAt: expiresAt) }
        records[session.id]?.sentUpTo = session.isOnline && session.place == nil ? session.head : session.sentUpTo
        // This also applies to messages that arrive through shared subscriptions from now on.
        records[session.id]?.redistributesAt = redistributesAt
        if session.queuedCount > 0 { records[session.id]?.mayHoldShared = true }
        records[session.id]?.load.read(session.queuedCount)
    }

    private mutating func insert(_ session: StoredSession, payer: CommitSource) {
        var record = Record(key: session.key, payer: payer)
        record.head = session.head
        record.place = session.place
        record.subscriptionsVersion = session.subscriptions.isEmpty ? 0 : session.subscriptionsVersion
        records[session.id] = record
        subscribe(session.id, session.subscriptions)
    }

    mutating func subscribe(_ id: DurableSessionID, _ subscriptions: [DurableSubscription]) {
        guard let record = records[id], !record.hasEnded else { return }
        if subscriptions.contains(where: \.isShared) {
            records[id]?.mayHoldShared = true
            if record.attachment == nil, !isOpenElsewhere(record) { absentSharing.insert(id) }
        }
        for subscription in subscriptions where index.insert(id, subscription, payer: record.payer) {
            let filter = TopicText(subscription.filter)
            guard records[id]?.subscriptions.insert(filter).inserted ?? false else { continue }
            if subscription.isShared { records[id]?.sharedSubscriptions.insert(filter) }
            quota.add(filters: DurableQuota.units(of: subscription.filter), of: record.payer)
        }
    }

    /// Reserves room for filters that a session is about to get. The caller gives the room back if the filters are not
    /// added. The caller also gives it back when they are added, because added filters are counted separately.
    ///
    /// - Parameter filters: the filters, without duplicates.
    /// - Returns: for each filter, the number of reserved units (``DurableQuota/units(of:)``). The number is 0 if the
    ///   session already has the filter, and nil if there is no room for the filter.
    mutating func reserve(_ id: DurableSessionID, _ filters: [TopicText]) -> [Int?] {
        guard let record = records[id] else { return filters.map { _ in 0 } }
        return filters.map { filter in
            guard !record.subscriptions.contains(filter) else { return 0 }
            let units = DurableQuota.units(of: filter.rawValue)
            return quota.takeFilters(units, of: record.payer) == nil ? units : nil
        }
    }

    mutating func giveBack(_ count: Int, of id: DurableSessionID, payer: CommitSource?) {
        guard count > 0, let payer = records[id]?.payer ?? payer else { return }
        quota.add(filters: -count, of: payer)
    }

    mutating func unsubscribe(_ id: DurableSessionID, _ filters: some Sequence<String>) {
        guard let record = records[id] else { return }
        for filter in filters {
            index.remove(id, filter)
            guard records[id]?.subscriptions.remove(TopicText(filter)) != nil else { continue }
            records[id]?.sharedSubscriptions.remove(TopicText(filter))
            quota.add(filters: -DurableQuota.units(of: filter), of: record.payer)
        }
    }
}

extension DurableSessionID {
    /// The id that no session has.
    static let none = Self(rawValue: 0)
}
