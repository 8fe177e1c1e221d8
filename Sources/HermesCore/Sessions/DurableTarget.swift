// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Subscribers of a topic: a session, many sessions of one owner, or a group of sessions that share a subscription.
///
/// Valid until ``DurableSessions/generation`` changes.
package enum DurableTarget: Sendable {
    case session(DurableMember)
    case crowd(DurableCrowd)
    case group(DurableGroup)
}

/// A durable session among the subscribers of a topic.
package struct DurableMember: Sendable {
    package let session: DurableSessionID
    /// Combined from all its matching subscriptions: the highest QoS, all identifiers; no local only if all of them ask
    /// for it.
    package internal(set) var options: SubscriptionOptions
    let load: DurableLoad

    /// The target for a publication; nil if there is none, because the subscription gets it at most once, or is the
    /// publisher's own with no local, or the session has ended.
    ///
    /// - Parameter share: the shared subscription that it comes by.
    func target(
        of publication: StoredPublication,
        from publisher: DurableSessionID?,
        share: String? = nil
    ) -> PublicationTarget? {
        let qos = min(options.qos, publication.qos)
        guard qos > .atMostOnce, !(options.noLocal && publisher == session) else { return nil }
        // A shared one is for another member then: the commit tells that this one is gone.
        guard share != nil || !load.hasEnded.load(ordering: .relaxed) else { return nil }
        return PublicationTarget(
            session: session,
            qos: qos,
            identifiers: options.identifiers,
            retain: options.retainAsPublished && publication.retain,
            share: share
        )
    }
}
