// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Holds completions until all other nodes have read the changes that this node has made to a session. From then on,
/// those nodes queue the publications for this session that they accept. The completions of one session run in the
/// order of the session's changes. A process that is alone has no confirmations.
///
/// State: a `Mutex` around a dictionary. No other code is called while it is locked.
final class Confirmations: Sendable {
    private struct Waiting: Sendable {
        let completion: @Sendable () -> Void
    }

    private let roster: ClusterRoster
    private let waiting = Mutex<[DurableSessionID: [Waiting]]>([:])

    init(_ roster: ClusterRoster) { self.roster = roster }

    /// - Parameter completion: called after the other nodes have read the session, or have not answered in time. It is
    ///   called at once if there are no other nodes and no completion waits.
    func wait(for id: DurableSessionID, _ completion: @escaping @Sendable () -> Void) {
        let isAlone = roster.peers.isEmpty
        let (mustWait, isFirst) = waiting.withLock { waiting in
            if isAlone, waiting[id] == nil { return (false, false) }
            waiting[id, default: []].append(Waiting(completion: completion))
            return (true, waiting[id]?.count == 1)
        }
        guard mustWait else { return completion() }
        // A separate task is needed, because the caller is the committer's thread. The task ends with the last
        // completion that waits.
        if isFirst { Task { await run(id) } }
    }

    private func run(_ id: DurableSessionID) async {
        var isDone = false
        while !isDone {
            let batch = waiting.withLock { $0[id] ?? [] }
            _ = await roster.askAll(.session(id))
            for one in batch { one.completion() }
            // Completions that were added meanwhile may belong to changes that were made after the session was read, so
            // they wait for another reading.
            isDone = waiting.withLock { waiting in
                waiting[id]?.removeFirst(batch.count)
                guard waiting[id]?.isEmpty ?? true else { return false }
                waiting[id] = nil
                return true
            }
        }
    }
}
