// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Completions that wait until all other nodes have read what this node has changed in a session, so that they store
/// for it what they take from then on. For each session they run in the order of the changes. A process that is alone
/// has none.
///
/// State: a `Mutex` around a dictionary; nothing is called under it.
final class Confirmations: Sendable {
    private struct Waiting: Sendable {
        let completion: @Sendable () -> Void
    }

    private let roster: ClusterRoster
    private let waiting = Mutex<[DurableSessionID: [Waiting]]>([:])

    init(_ roster: ClusterRoster) { self.roster = roster }

    /// - Parameter completion: called once the other nodes have read the session, or do not answer in time. Runs at
    ///   once if there are no other nodes and nothing waits.
    func wait(for id: DurableSessionID, _ completion: @escaping @Sendable () -> Void) {
        let isAlone = roster.peers.isEmpty
        let (mustWait, isFirst) = waiting.withLock { waiting in
            if isAlone, waiting[id] == nil { return (false, false) }
            waiting[id, default: []].append(Waiting(completion: completion))
            return (true, waiting[id]?.count == 1)
        }
        guard mustWait else { return completion() }
        // A task of its own, because the committer's thread calls; it ends with the last one that waits.
        if isFirst { Task { await run(id) } }
    }

    private func run(_ id: DurableSessionID) async {
        var isDone = false
        while !isDone {
            let batch = waiting.withLock { $0[id] ?? [] }
            _ = await roster.askAll(.session(id))
            for one in batch { one.completion() }
            // Those that came meanwhile may have changed it after it was read.
            isDone = waiting.withLock { waiting in
                waiting[id]?.removeFirst(batch.count)
                guard waiting[id]?.isEmpty ?? true else { return false }
                waiting[id] = nil
                return true
            }
        }
    }
}
