// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// Deletes expired publications and the remains of removed sessions, a limited number of rows per call.
    ///
    /// - Returns: the number of handled rows; 0 if nothing is left to do.
    func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        let loads = PurgedLoads()
        let purge = try await store.purgeSessions(now: now, limit: limit) { [shared] id in
            let (record, node) = shared.state.withLock { ($0.records[id], $0.node) }
            // Only the node that has the session open knows which publications may have been sent. On all other nodes,
            // every publication counts as sent, so that no publication is deleted too early.
            guard let record else { return node == nil ? 0 : .max }
            loads.note(id, record.load)
            if let place = record.place?.node, place != node { return .max }
            return max(record.sentUpTo, record.attachment?.sentUpTo ?? 0)
        }
        loads.lessen(by: purge.expired)
        if isAmongSeveral {
            let changes = shared.change { state in purge.expired.keys.flatMap { state.changed($0) } }
            perform(changes)
        }
        return purge.rows
    }
}

/// The loads of the sessions from whose queues a purge may delete publications.
private final class PurgedLoads: Sendable {
    private let loads = Mutex<[DurableSessionID: (load: DurableLoad, readings: Int)]>([:])

    /// Remembers a load; called before the deletion is committed.
    func note(_ id: DurableSessionID, _ load: DurableLoad) {
        let readings = load.readings.load(ordering: .relaxed)
        loads.withLock { if $0[id] == nil { $0[id] = (load, readings) } }
    }

    /// Subtracts the deleted publications from the loads; called after the deletion is committed. A load that was read
    /// from the store meanwhile already includes the deletion.
    func lessen(by expired: [DurableSessionID: Int]) {
        let loads = loads.withLock { $0 }
        for (id, count) in expired {
            guard let (load, readings) = loads[id], load.readings.load(ordering: .relaxed) == readings else { continue }
            load.queued.subtract(count, ordering: .relaxed)
        }
    }
}
