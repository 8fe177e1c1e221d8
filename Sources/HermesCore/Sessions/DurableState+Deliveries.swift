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
        case (.completed(let id, let seqs), _):
            records[id]?.load.queued.subtract(seqs.count, ordering: .relaxed)
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
            (.retain, _), (.released, _), (.receivedReleased, _):
            break
        }
    }

    /// - Parameter seq: the place in the target's queue; 0: it is not queued there.
    private mutating func place(
        _ publication: StoredPublication,
        _ target: PublicationTarget,
        _ seq: UInt64,
        _ deliveries: inout DurableDeliveries
    ) {
        guard let index = records.index(forKey: target.session) else { return }
        if target.share != nil { records.values[index].load.chosen.subtract(1, ordering: .relaxed) }
        guard seq > 0 else {
            // Another member of the shared subscription gets it.
            if target.share == nil { dropped += 1 }
            return
        }
        if target.share != nil {
            records.values[index].mayHoldShared = true
            if records.values[index].attachment == nil { absentSharing.insert(target.session) }
        }
        if node != nil { records.values[index].hasQueued = true }
        // Without a copy of the record.
        if node != nil, let other = records.values[index].place?.node, other != node {
            records.values[index].head = max(records.values[index].head, seq)
            return deliveries.add(seq, to: target.session, on: other.id)
        }
        // At or below the head: queued before this connection opened the session, which knows of it.
        let head = records.values[index].head
        guard seq > head else { return }
        records.values[index].head = seq
        // With what other nodes have queued before.
        records.values[index].load.queued.add(Int(clamping: seq - head), ordering: .relaxed)
        guard let attachment = records.values[index].attachment else { return }
        deliveries.add(QueuedPublication(target, seq: seq, publication), for: target.session, to: attachment)
    }
}
