// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores durable sessions, what waits for them, and retained publications. Batch-shaped as ``MessageStore``.
///
/// Implementations: `Memory/MemoryStore` (the executable specification) and HermesSQLite. Both pass
/// `SessionStoreConformance` of HermesTestKit.
package protocol SessionStore: Sendable {
    /// Applies all operations in order in one transaction; when it returns, all are durable.
    ///
    /// Called by one thread at a time, off the event loops; may block. An operation that is refused (outcome
    /// `.refused`) changes nothing and does not disturb the others.
    /// - Throws: ``HermesError`` with `.storageUnavailable`; then nothing of the batch was applied.
    func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome]

    /// All sessions, with their subscriptions, without ``StoredSession/released`` and ``StoredSession/received``.
    func sessions() async throws(HermesError) -> [StoredSession]

    /// Reads what waits in a session's queue behind `seq`, ascending; without what is released.
    ///
    /// A page may be shorter than `limit` where its payloads reach `maxBytes`; it is empty only if nothing is there. The
    /// store has no clock: what has expired is given until ``purgeSessions(now:limit:)`` removes it.
    func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> [QueuedPublication]

    /// As ``queued(of:after:limit:maxBytes:)``, of what came by shared subscriptions alone (``QueuedPublication/share``).
    func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> [QueuedPublication]

    /// All retained publications, in no order.
    func retained() async throws(HermesError) -> [StoredPublication]

    /// Deletes what is left of removed sessions, and publications that have expired and that no session was sent yet; a
    /// bounded amount per call.
    /// Sessions themselves end by ``SessionOperation/remove(_:)`` alone.
    /// - Returns: how many rows were dealt with; 0 when there is nothing left to do.
    func purgeSessions(now: Timestamp, limit: Int) async throws(HermesError) -> Int
}

/// One change in a commit.
package enum SessionOperation: Sendable {
    /// Finds the session or creates it, and marks it online (`.opened`).
    ///
    /// - clean: removes the session there is first.
    /// - expiry: how long it will stay without a connection; nil: for ever.
    case open(SessionKey, clean: Bool, expiry: Duration?)
    /// The session has no connection from now on. `sentUpTo` only ever grows.
    case close(DurableSessionID, sentUpTo: UInt64, expiresAt: Timestamp?)
    /// The session ends, with all it has.
    case remove(DurableSessionID)
    /// Adds subscriptions; one with the same filter is replaced.
    case subscribe(DurableSessionID, [DurableSubscription])
    /// Takes subscriptions back, by their filters.
    case unsubscribe(DurableSessionID, [String])
    /// Queues a publication for each target (`.published`); notes the packet id a session published it with (QoS 2);
    /// and keeps it for its topic if it retains: all or nothing.
    case publish(StoredPublication, targets: [PublicationTarget], received: ReceivedPacket?, retains: Bool)
    /// Takes publications out of a session's queue, for others' (`.moved`).
    case move(QueueMove)
    /// Keeps a publication for its topic, instead of the one before; an empty payload only removes that.
    case retain(StoredPublication)
    /// The client has taken these, to the end: gone, released or not.
    case completed(DurableSessionID, [UInt64])
    /// The client has received this one (QoS 2): its content goes, the seq stays until it is completed.
    case released(DurableSessionID, UInt64)
    /// The client has released a packet id it had published with.
    case receivedReleased(DurableSessionID, UInt16)
}

/// A packet id that a durable session published with, QoS 2.
package struct ReceivedPacket: Sendable, Hashable {
    package let session: DurableSessionID
    package let packetID: UInt16

    package init(session: DurableSessionID, packetID: UInt16) {
        self.session = session
        self.packetID = packetID
    }
}

/// Publications that leave a session's queue: what came by a shared subscription goes to others that have it.
package struct QueueMove: Sendable {
    package struct Item: Sendable {
        package let queued: QueuedPublication
        /// In whose queue it goes; nil: to somebody who has none.
        package let target: PublicationTarget?

        package init(_ queued: QueuedPublication, to target: PublicationTarget?) {
            self.queued = queued
            self.target = target
        }
    }

    /// When nothing is to be moved.
    package enum Condition: Sendable {
        case none
        /// The session has a connection.
        case isOffline
    }

    package let session: DurableSessionID
    package let items: [Item]
    package let condition: Condition
    /// Ends the session, with all that is left: if all items are moved or not there any more, and nothing that came by a
    /// shared subscription waits behind this seq. Nil: it stays.
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

    /// What became of one item.
    package enum Outcome: Sendable, Hashable {
        /// In the queue of its target.
        case queued(UInt64)
        /// In no queue any more.
        case takenOut
        /// Its target is gone or has no room.
        case stays
        /// It was not there any more.
        case gone
    }
}

/// What became of one operation.
package enum SessionOutcome: Sendable {
    case opened(StoredSession)
    /// The seq in each target's queue; 0 where the session is gone or its queue full
    /// (``StoreSettings/maxQueuedMessages``, ``StoreSettings/maxQueuedBytes``).
    case published([UInt64])
    /// For each item what became of it; and whether the session has ended.
    case moved([QueueMove.Outcome], hasEnded: Bool)
    case done
    /// Nothing was changed: `.notFound` (no such session).
    case refused(HermesError)
}
