// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A crowd: the durable sessions of one owner among the subscribers of a topic, if there are many of them.
///
/// For each publication, the choice of targets ends as soon as the owner's share of all queues has no more room. So an
/// owner with full queues adds little to the cost of publications, however many sessions it has.
///
/// State: an atomic number. Thread-safe.
package final class DurableCrowd: Sendable {
    /// The smallest number of sessions in a crowd. Fewer sessions are single targets.
    static let minMembers = 16

    let owner: CommitSource
    let members: [DurableMember]
    /// The approximate memory of the members, in bytes.
    let bytes: Int
    /// The index of the member with which the choice for the next publication begins. So members take turns if there is
    /// not enough room for all of them.
    private let turn = Atomic<Int>(0)

    /// - Parameter members: the sessions, at least one. Each of them gets publications with QoS 1 or 2.
    init(owner: CommitSource, members: [DurableMember]) {
        self.owner = owner
        self.members = members
        bytes = members.reduce(0) { $0 + $1.bytes }
    }

    /// The choice of the targets for one publication. It looks at some members at a time.
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

        /// The number of members that do not get the publication because queues are full. It is valid at the end of the
        /// walk. It includes all members that were not looked at.
        var dropped: Int { crowd.members.count - others - taken }

        /// Looks at the next members. Appends to `targets` the members that get the publication.
        ///
        /// - Parameters:
        ///   - most: the largest number of members to look at.
        ///   - known: the sessions that have the publication already.
        /// - Returns: the number of members that were looked at. If this number is less than `most`, the walk is at its
        ///   end.
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

    /// Begins to choose the targets for a publication; returns nil if there are none.
    ///
    /// - Parameter dropped: a count of dropped publications. If the owner's queues are full, the number of members is
    ///   added to it.
    func begin(for publication: StoredPublication, in queues: QueueBudget, dropped: inout Int) -> Walk? {
        guard publication.qos > .atMostOnce else { return nil }
        let room = queues.room(for: members.count, weight: publication.weight, of: owner)
        guard room > 0 else {
            dropped += members.count
            return nil
        }
        return Walk(self, room: room)
    }

    /// Returns the number of queues that a publication would be written to.
    func reach(of publication: StoredPublication, in queues: QueueBudget) -> Int {
        publication.qos > .atMostOnce ? queues.free(for: members.count, weight: publication.weight, of: owner) : 0
    }
}
