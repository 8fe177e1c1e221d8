// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Kept sessions of several nodes. Each node has a copy of all sessions with their subscriptions. "The record" is the
/// content of the store that all nodes share. From the record, a node reads what other nodes have changed and which
/// publications they have queued.
extension DurableState {
    /// How a process uses a session's subscriptions in the record.
    enum Subscriptions {
        /// The process ignores them, because its own copy of the session already has them.
        case none
        /// The process adds them to its own copy. It learns later which subscriptions in its copy have ended.
        case added
        /// The process replaces the subscriptions in its own copy with those in the record.
        case replaced
    }

    /// The effects of reading a session's state from the record.
    struct Learned {
        var actions: [Action] = []
        /// Whether the session must be read again, because this node is changing it.
        var isLater = false
        var subscriptions = Subscriptions.none
        /// The node that has the session open, and the newest seq of the queue. Nil if that node need not be told about
        /// publications that this node has queued.
        var untold: (node: NodeID, head: UInt64)?
    }

    /// Whether another process has a session open.
    func isOpenElsewhere(_ record: Record) -> Bool { record.place?.node.map { $0 != node } ?? false }

    /// Whether the session's queue may contain messages from shared subscriptions. If there are several nodes, this is
    /// always true, because other nodes may have queued such messages.
    func mayHoldShared(_ record: Record) -> Bool { record.mayHoldShared || node != nil }

    /// Takes note that this process has changed a session in the record.
    mutating func changed(_ id: DurableSessionID) -> [Action] {
        guard node != nil else { return [] }
        changedWhileReading?.insert(id)
        return [.changed(id)]
    }

    /// Returns the actions for a session of which this process may know an outdated state; none if the process is
    /// alone.
    func outdated(_ id: DurableSessionID) -> [Action] { node == nil ? [] : [.outdated(id)] }

    /// Takes over the state of a session from the record, except its subscriptions (``Learned/subscriptions``).
    ///
    /// - Parameters:
    ///   - session: the session; nil if it is not in the record.
    ///   - redistributesAt: the time from which other members can get the session's messages from shared subscriptions,
    ///     if the session has no connection. Nil means never.
    mutating func learn(
        _ id: DurableSessionID,
        _ session: StoredSession?,
        now: Timestamp,
        redistributesAt: Timestamp?
    ) -> Learned {
        let isChanged = changedWhileReading?.contains(id) == true
        guard let session else { return isChanged ? Learned(isLater: true) : vanished(id) }
        guard let record = records[id] else {
            return isChanged ? Learned(isLater: true) : met(session, now: now, redistributesAt)
        }
        // This node must queue publications for a new subscription, whatever else it is doing with the session.
        var later = Learned(isLater: true)
        if !record.hasEnded, session.subscriptionsVersion > record.subscriptionsVersion {
            later.subscriptions = .added
        }
        switch seats[record.key]?.phase {
        case .opening, .closing: return later
        case .occupied(let attachment):
            guard session.place == record.place else {
                guard !isChanged else { return later }
                later.actions = replace(attachment, at: record.key)
                later.untold = untold(session)
                return later
            }
            // This node has the session open, so its own copy of the subscriptions is current.
            guard !isChanged else { return Learned(isLater: true) }
            return Learned(actions: advance(id, attachment, to: session.head))
        case .vacant, nil:
            guard !isChanged else { return later }
            guard record.hasEnded else { return take(session, now: now, redistributesAt) }
            // There is nothing to do in two cases: the removal is under way, or it will be tried again because no other
            // node has opened the session.
            guard !record.isBeingRemoved, session.place != record.place else { return Learned() }
            forget(id)
            seats[record.key] = nil
            return met(session, now: now, redistributesAt)
        }
    }

    /// Takes note that other nodes have queued publications, up to `head`, for a session with a connection to this
    /// node.
    private mutating func advance(
        _ id: DurableSessionID,
        _ attachment: any DurableAttachment,
        to head: UInt64
    ) -> [Action] {
        guard let known = records[id]?.head, head > known else { return [] }
        records[id]?.head = head
        records[id]?.load.queued.add(Int(clamping: head - known), ordering: .relaxed)
        return [.advance(attachment, head)]
    }

    /// Notes that other nodes have queued publications, up to `head`, for a session. According to those nodes, the
    /// session is open on this node.
    mutating func advance(_ id: DurableSessionID, to head: UInt64) -> [Action] {
        guard let attachment = records[id]?.attachment else { return outdated(id) }
        return advance(id, attachment, to: head)
    }

    /// Takes over a session from the record. This process does not know the session yet.
    private mutating func met(_ session: StoredSession, now: Timestamp, _ redistributesAt: Timestamp?) -> Learned {
        // Filters that the session had before may still wait for their removal from the index. If they were added again
        // now, that removal would remove them. So the session is taken over later in this case.
        guard !leaving.contains(where: { $0.id == session.id }), !discarding.contains(session.id) else {
            return Learned(isLater: true)
        }
        if let seat = seats[session.key] {
            switch seat.phase {
            case .opening, .closing: return Learned(isLater: true)
            case .occupied(let attachment):
                guard let transient = transients[seat.session], let place = session.place, place.node == nil,
                    place.since <= transient.at
                else { return Learned(actions: replace(attachment, at: session.key), isLater: true) }
                // The client had disconnected from its kept session before it connected to this node. This node did not
                // know of that session yet.
                return Learned(actions: transient.isClean ? discard(session) : [], isLater: true)
            case .vacant: if seat.session != session.id { forget(seat.session) }
            }
        }
        var bare = session
        bare.subscriptions = []
        load(bare, expiresAt: nil)
        return take(session, now: now, redistributesAt)
    }

    /// Removes a kept session that its client has replaced with a session that is not stored.
    private mutating func discard(_ session: StoredSession) -> [Action] {
        discarding.insert(session.id)
        let opening = session.place?.opening
        return [.remove(session.id, sentUpTo: session.sentUpTo, mayHoldShared: true, opening: opening)]
    }

    /// Forgets a session that is not in the record.
    private mutating func vanished(_ id: DurableSessionID) -> Learned {
        guard let record = records[id] else { return Learned() }
        switch seats[record.key]?.phase {
        case .opening, .closing: return Learned(isLater: true)
        case .occupied(let attachment):
            markEnded(id)
            return Learned(actions: replace(attachment, at: record.key), isLater: true)
        case .vacant:
            guard !record.isBeingRemoved else { return Learned() }
            seats[record.key] = nil
        case nil: break
        }
        markEnded(id)
        forget(id)
        return Learned(actions: record.hasEnded ? [] : [.ended(record.key)])
    }

    /// Returns the action that ends a connection, because another node has opened or removed its session. Returns no
    /// action if this one was already returned.
    private mutating func replace(_ attachment: any DurableAttachment, at key: SessionKey) -> [Action] {
        defer { seats[key]?.isReplaced = true }
        return seats[key]?.isReplaced == true ? [] : [.replace(attachment)]
    }

    /// Takes over the state of a session that has no connection to this node.
    private mutating func take(_ session: StoredSession, now: Timestamp, _ redistributesAt: Timestamp?) -> Learned {
        let id = session.id
        guard let known = records[id] else { return Learned() }
        // If the record counts the session as open on this node, the end of its connection could not be stored.
        guard session.place?.node == nil || session.place?.node != node else { return closeAgain(session, now: now) }
        let isOpen = session.place?.node != nil
        let hasMoved = session.place != known.place
        records[id]?.place = session.place
        records[id]?.head = max(known.head, session.head)
        records[id]?.sentUpTo = max(known.sentUpTo, session.sentUpTo)
        records[id]?.redistributesAt = isOpen ? nil : known.redistributesAt ?? redistributesAt
        records[id]?.load.isOnline.store(isOpen, ordering: .relaxed)
        // If the session is open on another node, only that node knows the number of its waiting publications. The
        // store refuses publications for which there is no room.
        records[id]?.load.read(isOpen ? 0 : session.queuedCount)
        setInheritedExpiry(of: id, to: isOpen ? nil : session.expiresAt)
        if !isOpen, session.subscriptions.contains(where: \.isShared) {
            absentSharing.insert(id)
        } else {
            absentSharing.remove(id)
        }
        var learned = Learned()
        if session.subscriptionsVersion != known.subscriptionsVersion { learned.subscriptions = .replaced }
        if hasMoved { learned.untold = untold(session) }
        return learned
    }

    /// Decides whether another process, which has the session open, must be told about publications that this process
    /// has queued.
    ///
    /// - Returns: the other process's node, and the newest seq of the queue; nil if nothing must be told.
    private mutating func untold(_ session: StoredSession) -> (node: NodeID, head: UInt64)? {
        guard let record = records[session.id], record.hasQueued, let other = session.place?.node else { return nil }
        records[session.id]?.hasQueued = false
        return (other.id, max(record.head, session.head))
    }

    private mutating func closeAgain(_ session: StoredSession, now: Timestamp) -> Learned {
        guard var seat = seats[session.key], seat.session == session.id, let record = records[session.id] else {
            return Learned()
        }
        // The session may have been opened although its client was told that the opening had failed.
        let isKnown = record.place == session.place
        let expiresAt = isKnown ? record.expiresAt : session.expiry.map { now.advanced(by: $0) }
        records[session.id]?.place = session.place
        seat.phase = .closing
        seats[session.key] = seat
        let closing = close(session.id, sentUpTo: record.sentUpTo, expiresAt: expiresAt, of: record.payer)
        return Learned(actions: closing, isLater: true)
    }

    /// Takes over the subscriptions of a session that this process knew before and has now opened. Other nodes may have
    /// changed these subscriptions.
    mutating func reopened(_ session: StoredSession) {
        guard node != nil, let record = records[session.id], !record.hasEnded,
            record.subscriptionsVersion != session.subscriptionsVersion
        else { return }
        let filters = session.subscriptions.map { TopicText($0.filter) }
        subscribe(session.id, session.subscriptions)
        unsubscribe(session.id, record.subscriptions.subtracting(filters).lazy.map(\.rawValue))
        records[session.id]?.subscriptionsVersion = session.subscriptionsVersion
    }

    /// Takes note that this process has changed a session's subscriptions in the record.
    mutating func changedSubscriptions(of id: DurableSessionID) -> [Action] {
        guard node != nil else { return [] }
        // The subscriptions of a session without a connection are read again instead.
        if records[id]?.attachment != nil { records[id]?.subscriptionsVersion += 1 }
        return changed(id)
    }

    /// Ends this node's connection of a client that has later connected to another node. Neither session is stored.
    mutating func attachedElsewhere(_ key: SessionKey, at time: Timestamp) -> [Action] {
        guard let seat = seats[key], case .occupied(let attachment) = seat.phase, !seat.isReplaced,
            let transient = transients[seat.session], transient.at < time
        else { return [] }
        seats[key]?.isReplaced = true
        return [.replace(attachment)]
    }

    // MARK: Reading

    mutating func beginReading() { changedWhileReading = [] }

    mutating func endReading() { changedWhileReading = nil }

    /// Whether the subscriptions of a session may still be replaced with the subscriptions that were read from the
    /// record.
    func isLearning(_ id: DurableSessionID) -> Bool {
        guard let record = records[id], !record.hasEnded, case .vacant? = seats[record.key]?.phase else { return false }
        return changedWhileReading?.contains(id) != true
    }
}

extension DurableSubscription {
    /// Whether the subscription is shared.
    var isShared: Bool { SharedFilter.isShared(filter) }
}
