// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The durable sessions of one owner among the subscribers of a topic, where they are many.
///
/// A publication looks at no more of them than the queues of their owner have room for. So an owner with full queues
/// adds little to the cost of publications, however many sessions it keeps.
///
/// State: an atomic number. Thread-safe.
package final class DurableCrowd: Sendable {
    /// Fewer sessions are looked at one by one.
    static let minMembers = 16

    let owner: CommitSource
    let members: [DurableMember]
    /// The members that get anything by their queues.
    private let reliable: Int
    /// The member at which the next publication begins: if there is not room for all, they take turns.
    private let turn = Atomic<Int>(0)

    /// - Parameter members: not empty.
    init(owner: CommitSource, members: [DurableMember]) {
        self.owner = owner
        self.members = members
        reliable = members.count { $0.options.qos > .atMostOnce }
    }

    /// The targets for a publication, and how many are left out because their queues are full.
    func choose(
        for publication: StoredPublication,
        from publisher: DurableSessionID?,
        in queues: QueueBudget
    ) -> (targets: [PublicationTarget], dropped: Int) {
        guard publication.qos > .atMostOnce, reliable > 0 else { return ([], 0) }
        let room = queues.room(for: reliable, weight: publication.weight, of: owner)
        guard room > 0 else { return ([], reliable) }
        var targets: [PublicationTarget] = []
        targets.reserveCapacity(room)
        let start = turn.load(ordering: .relaxed)
        var looked = 0
        var others = 0
        while looked < members.count, targets.count < room {
            let member = members[(start &+ looked) % members.count]
            looked += 1
            guard let target = member.target(of: publication, from: publisher) else {
                others += 1
                continue
            }
            if member.load.current < queues.maxEntriesPerQueue { targets.append(target) }
        }
        turn.store((start &+ looked) % members.count, ordering: .relaxed)
        // Those that are not looked at count as if all of them were due.
        return (targets, max(0, min(reliable, members.count - others) - targets.count))
    }
}
