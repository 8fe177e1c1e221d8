// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Subscribers of a topic: a session, many sessions of one owner, or a group of sessions that share a subscription.
///
/// A target is valid until ``DurableSessions/generation`` changes.
package enum DurableTarget: Sendable {
    case session(DurableMember)
    case crowd(DurableCrowd)
    case group(DurableGroup)
}

/// A durable session among the subscribers of a topic.
package struct DurableMember: Sendable {
    package let session: DurableSessionID
    /// The options of all its matching subscriptions.
    var options: CombinedOptions
    let load: DurableLoad

    /// The approximate memory of the member in a list, in bytes.
    var bytes: Int { 96 + options.identifierBytes }

    /// Returns the target for a publication. Returns nil if the session gets the publication at most once. Also returns
    /// nil if the session is the publisher's own and all its matching subscriptions have the option "no local". With an
    /// ordinary subscription, the function also returns nil if the session has ended.
    ///
    /// - Parameter share: the text of the shared subscription through which the publication arrives; nil for an
    ///   ordinary subscription.
    func target(
        of publication: StoredPublication,
        from publisher: DurableSessionID?,
        share: String? = nil
    ) -> PublicationTarget? {
        guard let options = publisher == session ? options.own : options.others else { return nil }
        let qos = min(options.qos, publication.qos)
        guard qos > .atMostOnce else { return nil }
        // With a shared subscription, a session that has ended is still a target. The commit shows that the session is
        // gone, and then another member gets the publication.
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
