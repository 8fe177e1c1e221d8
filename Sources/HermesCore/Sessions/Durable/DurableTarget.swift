// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who gets what is published to a topic: a session, or one of those that share a subscription.
///
/// Good until ``DurableSessions/generation`` moves.
package enum DurableTarget: Sendable {
    case session(DurableMember)
    case group(DurableGroup)
}

/// A durable session among the subscribers of a topic.
package struct DurableMember: Sendable {
    package let session: DurableSessionID
    /// Of all its subscriptions that match: the highest QoS, all identifiers; no local only if none wants its own.
    package internal(set) var options: SubscriptionOptions
    let load: DurableLoad

    /// How a publication goes in its queue; nil if it does not: the subscription takes it at most once, or is the
    /// publisher's own and does not want that.
    ///
    /// - Parameter share: the shared subscription that it comes by.
    func target(
        of publication: StoredPublication,
        from publisher: DurableSessionID?,
        share: String? = nil
    ) -> PublicationTarget? {
        let qos = min(options.qos, publication.qos)
        guard qos > .atMostOnce, !(options.noLocal && publisher == session) else { return nil }
        return PublicationTarget(
            session: session,
            qos: qos,
            identifiers: options.identifiers,
            retain: options.retainAsPublished && publication.retain,
            share: share
        )
    }
}
