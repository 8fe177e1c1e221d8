// Hermes
// SPDX-License-Identifier: Apache-2.0

extension DurableSessions {
    /// Removes the publications retained below `user/NAME/`, which belong to the account of that name; returns before
    /// the store knows.
    func forgetRetained(of owner: String) {
        // A name may hold what means something in a filter; then nothing there is its alone.
        guard !owner.utf8.contains(where: { "/+#".utf8.contains($0) }), let filter = TopicFilter("user/\(owner)/#")
        else {
            return
        }
        let now = time.now()
        for found in retained.matching(filter, now: now) {
            retain(.removal(of: found.topic, at: now))
        }
    }

    /// Queues retained publications for a session that has just subscribed; they are delivered in order with all
    /// others.
    ///
    /// - Parameters:
    ///   - publications: the retained publications; those delivered at most once are left out.
    ///   - id: the session.
    ///   - options: the subscription's options, which limit the QoS and contain the identifiers.
    ///   - completion: called once all are stored, or none: on failure the store reports it elsewhere.
    package func queue(
        _ publications: [StoredPublication],
        for id: DurableSessionID,
        _ options: SubscriptionOptions,
        source: CommitSource = .server,
        completion: @escaping @Sendable () -> Void
    ) {
        let operations = publications.compactMap { publication -> SessionOperation? in
            let qos = min(publication.qos, options.qos)
            guard id.isStored, qos > .atMostOnce else { return nil }
            let target = PublicationTarget(session: id, qos: qos, identifiers: options.identifiers, retain: true)
            return .publish(publication, targets: [target], received: nil, retains: false)
        }
        guard let last = operations.last else { return completion() }
        for operation in operations.dropLast() { committer.submit(operation, of: source) }
        committer.submit(last, of: source) { _ in completion() }
    }
}
