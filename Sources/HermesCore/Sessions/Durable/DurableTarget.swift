// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Who gets what is published to a topic: a session, or one of those that share a subscription.
///
/// Good until ``DurableSessions/generation`` moves.
package enum DurableTarget: Sendable {
    case session(DurableMember)
    case group(DurableGroup)

    /// In which queue a publication goes; nil if in none: the subscription takes it at most once, or is the publisher's
    /// own and does not want that.
    func target(of publication: StoredPublication, from publisher: DurableSessionID?) -> PublicationTarget? {
        switch self {
        case .session(let member): member.target(of: publication, from: publisher)
        case .group(let group): group.next()?.target(of: publication, from: publisher)
        }
    }
}

/// A durable session among the subscribers of a topic.
package struct DurableMember: Sendable {
    package let session: DurableSessionID
    /// Of all its subscriptions that match: the highest QoS, all identifiers; no local only if none wants its own.
    package internal(set) var options: SubscriptionOptions
    let load: DurableLoad

    func target(of publication: StoredPublication, from publisher: DurableSessionID?) -> PublicationTarget? {
        let qos = min(options.qos, publication.qos)
        guard qos > .atMostOnce, !(options.noLocal && publisher == session) else { return nil }
        return PublicationTarget(
            session: session,
            qos: qos,
            identifiers: options.identifiers,
            retain: options.retainAsPublished && publication.retain
        )
    }
}

/// How busy a session is; anybody may look.
final class DurableLoad: Sendable {
    let isOnline = Atomic(false)
    /// What waits or is not acknowledged.
    let queued = Atomic(0)
}

/// The durable sessions that share one subscription: each publication goes to one of them.
package final class DurableGroup: Sendable {
    /// Whose turn it is; outlives the group as its members change.
    final class Turn: Sendable {
        let number = Atomic<UInt64>(0)
    }

    package let name: String
    package let members: [DurableMember]
    private let turn: Turn

    init(name: String, members: [DurableMember], turn: Turn) {
        self.name = name
        self.members = members
        self.turn = turn
    }

    /// The member with the least to do among those who are online, or among all if nobody is; equals take turns.
    func next() -> DurableMember? {
        guard !members.isEmpty else { return nil }
        let start = Int(turn.number.add(1, ordering: .relaxed).oldValue % UInt64(members.count))
        var best: (member: DurableMember, isOffline: Int, queued: Int)?
        for offset in 0..<members.count {
            let member = members[(start + offset) % members.count]
            let isOffline = member.load.isOnline.load(ordering: .relaxed) ? 0 : 1
            let queued = member.load.queued.load(ordering: .relaxed)
            if let best, (best.isOffline, best.queued) <= (isOffline, queued) { continue }
            best = (member, isOffline, queued)
        }
        return best?.member
    }
}
