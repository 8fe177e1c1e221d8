// Hermes
// SPDX-License-Identifier: Apache-2.0

extension DurableSessions {
    /// Queues a retained publication for one session that has just subscribed; it comes with all others, in its place.
    ///
    /// - Parameters:
    ///   - publication: as it is retained.
    ///   - id: whose queue.
    ///   - options: of the subscription: they limit the QoS and name the identifiers.
    package func queue(_ publication: StoredPublication, for id: DurableSessionID, _ options: SubscriptionOptions) {
        let target = PublicationTarget(
            session: id,
            qos: min(publication.qos, options.qos),
            identifiers: options.identifiers,
            retain: true
        )
        guard id.isStored, target.qos > .atMostOnce else { return }
        // A failure is the store's: it is down for everybody, and says so where somebody waits.
        committer.submit(.publish(publication, targets: [target], received: nil, retains: false)) { _ in }
    }
}
