// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// Removes the publications retained below `user/NAME/`, which belong to the account of that name; returns before
    /// the store knows. A removal that the store does not take is tried again with the next housekeeping, because the
    /// name may be somebody else's soon.
    func forgetRetained(of name: String) {
        // A name may contain characters that are special in a filter; then no topic there belongs to it alone.
        guard !name.utf8.contains(where: { "/+#".utf8.contains($0) }), let filter = TopicFilter("user/\(name)/#")
        else {
            return
        }
        let now = time.now()
        for found in retained.matching(filter, now: now) {
            retain(.removal(of: found.topic, at: now)) { [shared] result in
                guard case .failure = result else { return }
                _ = shared.state.withLock { $0.unforgotten.insert(name) }
            }
        }
    }

    /// Tries the removals again that the store did not take.
    func forgetRetained() {
        for name in shared.state.withLock({ $0.takeUnforgotten() }) { forgetRetained(of: name) }
    }

    /// Queues retained publications for a session that has just subscribed; they are delivered in order with all
    /// others.
    ///
    /// - Parameters:
    ///   - publications: as they are retained; those that are delivered at most once are left out.
    ///   - id: whose queue.
    ///   - options: of the subscription: they limit the QoS and name the identifiers.
    ///   - completion: called once, with those that are not in the queue: it is full, or the store took nothing.
    package func queue(
        _ publications: [StoredPublication],
        for id: DurableSessionID,
        _ options: SubscriptionOptions,
        source: CommitSource = .server,
        completion: @escaping @Sendable ([StoredPublication]) -> Void
    ) {
        let queued = publications.filter { id.isStored && min($0.qos, options.qos) > .atMostOnce }
        guard !queued.isEmpty else { return completion([]) }
        let pending = PendingQueueing(count: queued.count)
        for publication in queued {
            let target = PublicationTarget(
                session: id,
                qos: min(publication.qos, options.qos),
                identifiers: options.identifiers,
                retain: true
            )
            let operation = SessionOperation.publish(publication, targets: [target], received: nil, retains: false)
            committer.submit(operation, of: source) { result in
                let isQueued = if case .success(.published(let seqs)) = result { seqs != [0] } else { false }
                if let left = pending.finished(publication, isQueued: isQueued) { completion(left) }
            }
        }
    }
}

/// Publications that are on their way into one queue.
///
/// State: one `Mutex`.
private final class PendingQueueing: Sendable {
    private let state: Mutex<(count: Int, left: [StoredPublication])>

    init(count: Int) { state = Mutex((count, [])) }

    /// - Returns: once all are finished, those that are not in the queue; else nil.
    func finished(_ publication: StoredPublication, isQueued: Bool) -> [StoredPublication]? {
        state.withLock { state in
            state.count -= 1
            if !isQueued { state.left.append(publication) }
            return state.count == 0 ? state.left : nil
        }
    }
}
