// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// The number of removals of retained publications that may wait for the store at once.
    private static let removalsAtOnce = 128
    /// The number of steps that one search for retained publications takes while it holds a lock.
    private static let stepsAtOnce = 4_096

    /// Removes the publications that are retained for `user/NAME` and for the topics below it. These topics belong to
    /// the account of that name. The publications are removed in parts, so that other operations are committed between
    /// the parts.
    ///
    /// - Parameters:
    ///   - source: the source that pays for the commits.
    ///   - limit: the number of removals after which no further part begins.
    /// - Returns: the number of removed publications; nil if some may be left, because there were more than `limit` or
    ///   because the store did not accept all removals.
    func removeRetained(below name: String, source: CommitSource, limit: Int = .max) async -> Int? {
        guard let filter = TopicFilter(ownedBy: name) else { return 0 }
        var search = retained.search(filter)
        var count = 0
        while !search.isAtEnd {
            guard count < limit else { return nil }
            let now = time.now()
            var steps = Self.stepsAtOnce
            let found = retained.next(&search, now: now, limit: Self.removalsAtOnce, steps: &steps)
            let areRemoved = await withTaskGroup(of: Bool.self) { group in
                for publication in found {
                    group.addTask {
                        await withCheckedContinuation { continuation in
                            self.retain(.removal(of: publication.topic, at: now), source: source) {
                                continuation.resume(returning: $0.isSuccess)
                            }
                        }
                    }
                }
                return await group.reduce(true) { $0 && $1 }
            }
            guard areRemoved else { return nil }
            count += found.count
            await Task.yield()
        }
        return count
    }

    /// The number of publications that one call to ``clear(_:isLate:)`` removes. With this number, the caller waits for
    /// at most a second.
    private static let removalsPerCall = 4_096

    /// Removes the publications that are retained below a former name of an account, a limited number per call.
    ///
    /// - Parameter isLate: whether connections under that name have had enough time to end.
    /// - Returns: true if nothing is retained there any more and if no connection of the account can retain anything.
    ///   If `isLate` is true, the connections are not checked.
    func clear(_ name: KeptName, isLate: Bool) async -> Bool {
        let source = CommitSource.account(name.user)
        let removed = await removeRetained(below: name.key, source: source, limit: Self.removalsPerCall)
        guard removed != nil else { return false }
        guard isLate || !shared.state.withLock({ $0.hasConnection(of: .account(name.user)) }) else { return false }
        // The result is true if nothing was retained meanwhile.
        return await removeRetained(below: name.key, source: source, limit: Self.removalsPerCall) == 0
    }

    /// Queues retained publications for a session that has just subscribed. They are delivered in the order of the
    /// queue, together with all other publications.
    ///
    /// - Parameters:
    ///   - publications: the retained publications; those that would be delivered at most once are left out.
    ///   - id: the session.
    ///   - options: the options of the subscription, which limit the QoS and contain the subscription identifiers.
    ///   - completion: called once, with the publications that could not be queued because the queue is full or the
    ///     store failed.
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

/// Publications that are being added to one queue.
///
/// State: one `Mutex`.
private final class PendingQueueing: Sendable {
    private let state: Mutex<(count: Int, left: [StoredPublication])>

    init(count: Int) { state = Mutex((count, [])) }

    /// - Returns: nil until all publications are finished; then the publications that are not in the queue.
    func finished(_ publication: StoredPublication, isQueued: Bool) -> [StoredPublication]? {
        state.withLock { state in
            state.count -= 1
            if !isQueued { state.left.append(publication) }
            return state.count == 0 ? state.left : nil
        }
    }
}
