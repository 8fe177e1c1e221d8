// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The effects of commits on the queues of sessions.
extension DurableState {
    /// Applies a part of a commit.
    mutating func committed(
        _ operation: SessionOperation,
        _ outcome: SessionOutcome,
        _ rows: Range<Int>,
        _ deliveries: inout DurableDeliveries
    ) {
        switch (operation, outcome) {
        case (.completed(let id, _), .completed(let count)):
            records[id]?.load.queued.subtract(count, ordering: .relaxed)
        case (.publish(let publication, let targets, _, _), .published(let seqs)):
            for row in rows { place(publication, targets[row], seqs[row], &deliveries) }
        case (.move(let move), .moved(let outcomes, _)):
            var left = 0
            for row in rows {
                let (item, outcome) = (move.items[row], outcomes[row])
                if outcome != .stays, outcome != .gone { left += 1 }
                guard let target = item.target else { continue }
                let seq: UInt64 = if case .queued(let seq) = outcome { seq } else { 0 }
                place(item.queued.publication, target, seq, &deliveries)
            }
            records[move.session]?.load.queued.subtract(left, ordering: .relaxed)
            handedOver += UInt64(left)
        case (.open, _), (.close, _), (.remove, _), (.subscribe, _), (.unsubscribe, _), (.publish, _), (.move, _),
            (.retain, _), (.completed, _), (.released, _), (.receivedReleased, _):
            break
        }
    }

    /// - Parameter seq: the publication's seq in the target's queue; 0 if it is not queued there.
    private mutating func place(
        _ publication: StoredPublication,
        _ target: PublicationTarget,
        _ seq: UInt64,
        _ deliveries: inout DurableDeliveries
    ) {
        guard let index = records.index(forKey: target.session) else { return }
        // The record is changed in place, because a copy of it would cost more than everything else here.
        switch records.values[index].add(seq, isShared: target.share != nil, by: node) {
        case .dropped:
            // Another member of the shared subscription gets the publication.
            if target.share == nil { dropped += 1 }
        case .known:
            break
        case .elsewhere(let other):
            if target.share != nil { absentSharing.insert(target.session) }
            deliveries.add(seq, to: target.session, on: other)
        case .waits:
            if target.share != nil { absentSharing.insert(target.session) }
        case .delivered(let attachment):
            deliveries.add(QueuedPublication(target, seq: seq, publication), for: target.session, to: attachment)
        }
    }
}

extension DurableState.Record {
    /// The effect of an addition to a session's queue.
    fileprivate enum Addition {
        /// The queue has no room.
        case dropped
        /// The publication was queued before the present connection opened the session, so the connection knows of it.
        case known
        /// Another node has the session.
        case elsewhere(NodeID)
        /// The session has no connection.
        case waits
        case delivered(any DurableAttachment)
    }

    /// Adds a publication to the queue.
    ///
    /// - Parameters:
    ///   - seq: the publication's seq in the queue; 0 if it is not queued.
    ///   - isShared: whether the publication arrives through a shared subscription.
    ///   - node: the identity of this process among several nodes; nil if it is alone.
    fileprivate mutating func add(_ seq: UInt64, isShared: Bool, by node: NodeIdentity?) -> Addition {
        if isShared { load.chosen.subtract(1, ordering: .relaxed) }
        guard seq > 0 else { return .dropped }
        if let node {
            hasQueued = true
            // The nodes are compared without a copy of the record.
            if let other = place?.node, other != node {
                head = max(head, seq)
                return .elsewhere(other.id)
            }
        }
        let isNew = seq > head
        if isNew {
            // The difference also counts the publications that other nodes have queued since `head`.
            load.queued.add(Int(clamping: seq - head), ordering: .relaxed)
            head = seq
        }
        guard let attachment else { return .waits }
        return isNew ? .delivered(attachment) : .known
    }
}

extension QueuedPublication {
    init(_ target: PublicationTarget, seq: UInt64, _ publication: StoredPublication) {
        self.init(
            seq: seq,
            qos: target.qos,
            identifiers: target.identifiers,
            retain: target.retain,
            share: target.share,
            publication: publication
        )
    }
}
