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
    /// The member at which the next publication begins: if there is not room for all, they take turns.
    private let turn = Atomic<Int>(0)

    /// - Parameter members: not empty; all get it at least once.
    init(owner: CommitSource, members: [DurableMember]) {
        self.owner = owner
        self.members = members
    }

    /// The choice of the targets for one publication, some at a time.
    struct Walk {
        private let crowd: DurableCrowd
        private let room: Int
        private let start: Int
        private var looked = 0
        private var others = 0
        private var taken = 0

        fileprivate init(_ crowd: DurableCrowd, room: Int) {
            self.crowd = crowd
            self.room = room
            start = crowd.turn.load(ordering: .relaxed)
        }

        /// How many are left out because their queues are full, once it has come to its end. Those that were not looked
        /// at count as if all of them were due.
        var dropped: Int { crowd.members.count - others - taken }

        /// - Parameters:
        ///   - most: how many members to look at.
        ///   - known: the sessions that have it.
        /// - Returns: how many were looked at; less than `most`: it has come to its end.
        mutating func choose(
            for publication: StoredPublication,
            from publisher: DurableSessionID?,
            in queues: QueueBudget,
            most: Int,
            except known: Set<DurableSessionID>,
            into targets: inout [PublicationTarget]
        ) -> Int {
            let members = crowd.members
            var count = 0
            while count < most, looked < members.count, taken < room {
                let member = members[(start &+ looked) % members.count]
                looked += 1
                count += 1
                guard !known.contains(member.session), let target = member.target(of: publication, from: publisher)
                else {
                    others += 1
                    continue
                }
                guard member.load.current < queues.maxEntriesPerQueue else { continue }
                targets.append(target)
                taken += 1
            }
            if count < most { crowd.turn.store((start &+ looked) % members.count, ordering: .relaxed) }
            return count
        }
    }

    /// Begins to choose the targets for a publication; nil if there are none.
    ///
    /// - Parameter dropped: is raised by those that are left out because the owner's queues are full.
    func begin(for publication: StoredPublication, in queues: QueueBudget, dropped: inout Int) -> Walk? {
        guard publication.qos > .atMostOnce else { return nil }
        let room = queues.room(for: members.count, weight: publication.weight, of: owner)
        guard room > 0 else {
            dropped += members.count
            return nil
        }
        return Walk(self, room: room)
    }

    /// How many queues a publication would be written to.
    func reach(of publication: StoredPublication, in queues: QueueBudget) -> Int {
        publication.qos > .atMostOnce ? queues.free(for: members.count, weight: publication.weight, of: owner) : 0
    }
}
