// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores durable sessions, their queues, and retained publications. It commits operations in batches, like
/// ``MessageStore``.
///
/// Implementations: `Memory/MemoryStore` (the executable specification) and HermesSQLite. Both pass
/// `SessionStoreConformance` of HermesTestKit.
package protocol SessionStore: Sendable {
    /// Applies all operations in order in one transaction. When the call returns, all operations are durable.
    ///
    /// Only one thread calls this at a time, and never on an event loop. The call may block. An operation that is
    /// refused (outcome `.refused`) changes nothing and does not affect the other operations.
    /// - Throws: ``HermesError`` with `.storageUnavailable`. Then no operation of the batch was applied.
    func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome]

    /// Applies operations, as ``commit(_:now:)`` does, but takes them one by one while the transaction runs. As many
    /// operations are taken as fit into a short transaction (see ``MessageStore/commit(taking:now:)``).
    func commit(
        taking next: (_ isLong: Bool) -> SessionOperation?,
        now: Timestamp
    ) throws(HermesError) -> [SessionOutcome]

    /// Returns all sessions, with their subscriptions, but without ``StoredSession/released``,
    /// ``StoredSession/received`` and ``StoredSession/partial``.
    func sessions() async throws(HermesError) -> [StoredSession]

    /// Returns sessions with an id above `id`, or with any id if `id` is nil, in ascending order of their ids. Their
    /// subscriptions are left out. This function is for operators.
    ///
    /// - Parameters:
    ///   - text: only sessions whose client id or owner's name (``StoredSession/ownerName``) contains this text are
    ///     returned; the case of ASCII letters does not matter.
    ///   - searched: the largest number of sessions to look at.
    func sessions(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int,
        searched: Int
    ) async throws(HermesError) -> [StoredSession]

    /// Reads the publications of a session's queue after `seq`, in ascending order. Released publications are left out.
    ///
    /// A page may be shorter than `limit` if its publications reach `maxBytes`, or if entries are damaged. The store
    /// has no clock, so it returns expired publications until ``purgeSessions(now:limit:sentUpTo:)`` deletes them.
    func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage

    /// Works like ``queued(of:after:limit:maxBytes:)``, but reads only publications that arrived through shared
    /// subscriptions (``QueuedPublication/share``).
    func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage

    /// Returns the retained publications of these topics, in any order.
    func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication]

    /// Returns a page of the retained publications, in ascending order of the bytes of their topics.
    ///
    /// - Parameters:
    ///   - topic: the end of the previous page; nil for the first page.
    ///   - limit: the largest number of publications, at least 1.
    /// - Returns: the publications, and the end of the page; the end is nil if the page is the last one.
    func retained(
        after topic: TopicName?,
        limit: Int
    ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?)

    /// Deletes the remains of removed sessions, and expired publications that were not sent. Each call deletes a
    /// bounded amount. This function does not end sessions.
    ///
    /// - Parameters:
    ///   - now: the time at or before which publications have expired. It is not later than the present.
    ///   - sentUpTo: returns the newest seq that a session's connection may have sent. The store itself learns this seq
    ///     only when the session is closed. The purge calls this function on any thread, before the purge returns. The
    ///     function must not call the store.
    func purgeSessions(
        now: Timestamp,
        limit: Int,
        sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
    ) async throws(HermesError) -> SessionPurge

    /// The counts of the publications that wait in the queues of all sessions, by owner.
    var queues: QueueBudget { get }
}

extension SessionStore {
    /// Returns all retained publications.
    package func retained() async throws(HermesError) -> [StoredPublication] {
        var all: [StoredPublication] = []
        var place: TopicName?
        repeat {
            let page = try await retained(after: place, limit: 1_000)
            all += page.publications
            place = page.next
        } while place != nil
        return all
    }

    /// The default implementation, for stores in memory.
    package func sessions(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int,
        searched: Int
    ) async throws(HermesError) -> [StoredSession] {
        let wanted = Group.searchKey(text)
        let behind = try await sessions().filter { session in id.map { session.id > $0 } ?? true }
        let found = behind.sorted { $0.id < $1.id }.prefix(max(0, searched)).filter { session in
            let names = [session.key.clientID, session.ownerName]
            return wanted.isEmpty || names.contains { Group.searchKey($0).utf8.contains(wanted.utf8) }
        }
        return Array(found.prefix(max(0, limit)))
    }

    /// The default implementation, for stores without long transactions.
    package func commit(
        taking next: (_ isLong: Bool) -> SessionOperation?,
        now: Timestamp
    ) throws(HermesError) -> [SessionOutcome] {
        var operations: [SessionOperation] = []
        while let operation = next(false) { operations.append(operation) }
        return try commit(operations, now: now)
    }
}

/// One change in a commit.
package enum SessionOperation: Sendable {
    /// Finds the session or creates it, and marks it online (`.opened`).
    ///
    /// - clean: whether an existing session is removed first.
    /// - expiry: the time for which the session is kept without a connection; nil if it is kept forever.
    /// - payer: the ``StoredSession/payer`` of a new session.
    /// - node: the process that opens the session; nil if only one process uses the store.
    case open(
        SessionKey,
        clean: Bool,
        expiry: Duration?,
        payer: CommitSource = .server,
        on: NodeIdentity? = nil
    )
    /// The session has no connection from now on. The stored `sentUpTo` never becomes lower.
    ///
    /// - opening: the operation is refused if the session was opened more often than this (``SessionPlace/opening``).
    ///   If it is nil, there is no such check. A store that only one process uses ignores this value, here and in
    ///   ``remove(_:opening:)``.
    case close(DurableSessionID, sentUpTo: UInt64, expiresAt: Timestamp?, opening: UInt64? = nil)
    /// Removes the session and everything that belongs to it.
    ///
    /// - opening: as in ``close(_:sentUpTo:expiresAt:opening:)``.
    case remove(DurableSessionID, opening: UInt64? = nil)
    /// Adds subscriptions; a subscription with the same filter is replaced.
    case subscribe(DurableSessionID, [DurableSubscription])
    /// Removes the subscriptions with these filters.
    case unsubscribe(DurableSessionID, [String])
    /// Queues a publication for each target (`.published`), records the packet identifier under which a session
    /// published it (QoS 2), and retains the publication if `retains` is true. These changes take effect together or
    /// not at all. If a publication has very many targets, the operation is one of several parts (``DurableFanOut``).
    case publish(StoredPublication, targets: [PublicationTarget], received: ReceivedMark?, retains: Bool)
    /// Moves publications from a session's queue to other queues (`.moved`).
    case move(QueueMove)
    /// Retains a publication for its topic in place of the previous retained publication. If the payload is empty, the
    /// previous publication is only removed.
    case retain(StoredPublication)
    /// The client has completely acknowledged these publications. They are deleted, whether they were released or not
    /// (`.completed`).
    case completed(DurableSessionID, [UInt64])
    /// The client has received this publication (QoS 2). Its content is deleted, and its seq stays until the
    /// publication is completed.
    case released(DurableSessionID, UInt64)
    /// The client has released the identifier of its own publication.
    case receivedReleased(DurableSessionID, UInt16)
}

/// The packet identifier that a durable session's client gave to a QoS 2 publication. The store keeps it until the
/// client releases it.
package struct ReceivedMark: Sendable, Hashable {
    /// The part of the publication that is stored with an operation.
    package enum Extent: Sendable, Hashable {
        /// The whole publication.
        case whole
        /// A part before the last part, so the identifier does not count as received yet. The store remembers the
        /// targets (``PartialPublication``). If the publication is repeated after a failure, only the other targets get
        /// it. Part 0 replaces the targets that the store remembers for another publication under this identifier.
        case part(number: Int, content: Int64)
        /// The last part: the store forgets the targets that it remembered with the earlier parts.
        case last
        /// The last part, if the chosen members of all its shared subscriptions accept it. Otherwise, this part counts
        /// as ``part(number:content:)``, and the publication is not retained yet.
        case rest(number: Int, content: Int64)
    }

    package let session: DurableSessionID
    package let id: UInt16
    package let extent: Extent

    package init(session: DurableSessionID, id: UInt16, extent: Extent = .whole) {
        self.session = session
        self.id = id
        self.extent = extent
    }

    /// Returns the part of the publication that is stored with an operation.
    ///
    /// - Parameter seqs: for each target, the publication's seq in the target's queue; 0 if it was not queued.
    package func extent(with targets: [PublicationTarget], _ seqs: [UInt64]) -> Extent {
        guard case .rest(let number, let content) = extent else { return extent }
        let isLost = zip(targets, seqs).contains { $0.share != nil && $1 == 0 }
        return isLost ? .part(number: number, content: content) : .last
    }
}

extension ReceivedMark.Extent {
    /// Whether the whole publication is stored after this part is stored.
    package var isComplete: Bool {
        switch self {
        case .whole, .last: true
        case .part, .rest: false
        }
    }
}

/// Publications that leave a session's queue. Each publication goes to another member of the shared subscription
/// through which it arrived.
package struct QueueMove: Sendable {
    package struct Item: Sendable {
        package let queued: QueuedPublication
        /// The queue to which the publication moves; nil if it goes to a member without a queue.
        package let target: PublicationTarget?

        package init(_ queued: QueuedPublication, to target: PublicationTarget?) {
            self.queued = queued
            self.target = target
        }
    }

    /// The condition of the move. If it is not fulfilled, nothing is moved.
    package enum Condition: Sendable {
        case none
        /// The session must have no connection.
        case isOffline
        /// The session must not have been opened more often than this (``SessionPlace/opening``).
        case opened(UInt64)
    }

    package let session: DurableSessionID
    package let items: [Item]
    package let condition: Condition
    /// The seq up to which the queue was read for this move, if the session is to be ended; otherwise nil. The session
    /// is ended if no item stays, and if no publication of a shared subscription waits after this seq. Then the rest of
    /// its queue is deleted.
    package let endsBehind: UInt64?

    package init(
        from session: DurableSessionID,
        _ items: [Item],
        condition: Condition = .none,
        endsBehind: UInt64? = nil
    ) {
        self.session = session
        self.items = items
        self.condition = condition
        self.endsBehind = endsBehind
    }

    /// The outcome of one item.
    package enum Outcome: Sendable, Hashable {
        /// The item was queued for its target, with this seq.
        case queued(UInt64)
        /// The item was removed from the queue.
        case takenOut
        /// The item stays in the queue, because its target is gone or full, or because the condition is not fulfilled.
        case stays
        /// The item had left the queue before the move.
        case gone
    }
}

/// The effect of one call to ``SessionStore/purgeSessions(now:limit:sentUpTo:)``.
package struct SessionPurge: Sendable {
    /// The number of rows that were handled; 0 if nothing is left to do.
    package var rows = 0
    /// The number of expired publications that left each queue.
    package var expired: [DurableSessionID: Int] = [:]

    package init() {}
}

/// The outcome of one operation.
package enum SessionOutcome: Sendable {
    case opened(StoredSession)
    /// The seq in each target's queue; 0 if the session is gone, or if its queue or its owner's share is full
    /// (``StoreSettings/maxQueuedMessages``, ``StoreSettings/maxQueuedBytes``, ``QueueBudget``).
    case published([UInt64])
    /// The outcome of each item, and whether the session has ended.
    case moved([QueueMove.Outcome], hasEnded: Bool)
    /// The number of the completed publications that were still in the queue. The other publications had expired and
    /// were purged.
    case completed(Int)
    case done
    /// Nothing was changed. The error is `.notFound` if there is no such session, or ``StoreRefusals/openedElsewhere``.
    case refused(HermesError)
}
