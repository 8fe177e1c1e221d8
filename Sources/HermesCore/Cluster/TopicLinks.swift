// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The topics of this node and the others: each knows which filters have subscribers where, and sends its publications
/// there. A process that is alone has none.
///
/// State: two ``OrderedState``s, one for what the event loops change and one for what comes from the other nodes, and a
/// `Mutex` around the plane. Nothing is called under a lock.
package final class TopicLinks: Sendable {
    /// The others hear of this node's subscribers.
    private struct Telling: Sendable {
        let interest: [TopicInterest]
        let number: UInt64
    }

    /// The shards hear of another node's subscribers.
    private struct Learning: Sendable {
        let interest: [TopicInterest]
        let node: NodeID
    }

    private struct Peer: Sendable {
        let node: NodeIdentity
        var interest = PeerInterest()
        /// The publications that came from each of its loops.
        var publications: [Int: LinkNumbers] = [:]
    }

    /// Removes connections of this node from a room, and tells how many there were.
    package typealias RoomRemover = @Sendable (RoomExpulsion) async -> Int

    /// A struct of its own: a tuple with a function would be converted each time it is read, and grow (``Hook``).
    private struct Connected: Sendable {
        let plane: TopicPlane
        let remove: RoomRemover
    }

    private let roster: ClusterRoster
    private let own = OrderedState<OwnInterest, Telling>(OwnInterest())
    private let peers = OrderedState<[NodeID: Peer], Learning>([:])
    /// Nil before the first connection.
    private let connected = Mutex<Connected?>(nil)

    init(_ roster: ClusterRoster) { self.roster = roster }

    /// This node.
    var node: NodeID { roster.node.id }

    private var plane: TopicPlane? { connected.withLock { $0?.plane } }

    private func changeOwn(_ change: (inout OwnInterest, inout [Telling]) -> Void) {
        own.change(change) { step in
            roster.bus.publish(.topics(step.interest, number: step.number), to: roster.peers)
        }
    }

    private func changePeers<Value: Sendable>(
        _ change: (inout [NodeID: Peer], inout [Learning]) -> Value
    ) -> Value {
        peers.change(change) { plane?.learn($0.interest, of: $0.node) }
    }

    /// The topics of this process; called once, before the first subscription.
    package func connect(to plane: TopicPlane, remove: @escaping RoomRemover) {
        plane.connect(to: self)
        connected.withLock { $0 = Connected(plane: plane, remove: remove) }
        // What was learned before.
        changePeers { peers, steps in
            for (id, peer) in peers { steps.append(Learning(interest: peer.interest.all, node: id)) }
        }
    }

    // MARK: From the shards

    /// Subscriptions were added or removed. The other nodes are told by ``tellChanges()``, unless the topics are about
    /// one node; such topics begin with `$`.
    func change(_ key: TopicInterest.Key, by count: Int) {
        guard key.filter.rawValue.utf8.first != UInt8(ascii: "$") else { return }
        changeOwn { own, _ in own.change(key, by: count) }
    }

    func tellChanges() {
        changeOwn { own, steps in
            guard let changes = own.takeChanges() else { return }
            steps.append(Telling(interest: changes.interest, number: changes.number))
        }
    }

    /// Sends publications of a loop, as a hint: a loss is not repaired, so it must not look like the loss of a message
    /// that is.
    func send(_ publications: [NodePublication], loop: Int, number: UInt64, to node: NodeID) {
        roster.bus.hint(.publications(publications, loop: loop, number: number), to: NodeSet(node))
    }

    // MARK: From the other nodes

    /// A process has come, perhaps in the place of an earlier one. It must be asked.
    func joined(_ node: NodeIdentity) {
        changePeers { peers, steps in
            if let known = peers[node.id] {
                guard known.node.epoch < node.epoch else { return }
                steps.append(Learning(interest: known.interest.none, node: node.id))
            }
            peers[node.id] = Peer(node: node)
        }
    }

    /// A process has gone.
    func left(_ node: NodeIdentity) {
        changePeers { peers, steps in
            guard let peer = peers[node.id], peer.node.epoch <= node.epoch else { return }
            peers[node.id] = nil
            steps.append(Learning(interest: peer.interest.none, node: node.id))
        }
    }

    /// - Returns: false if the node must be asked.
    func told(_ interest: [TopicInterest], number: UInt64, by node: NodeIdentity) -> Bool {
        learn(node) { peer in
            let (new, mustAsk) = peer.interest.told(interest, number: number)
            return (new, !mustAsk)
        } ?? false
    }

    /// - Returns: false if the node must be asked again.
    func answered(_ all: [TopicInterest], upTo number: UInt64, by node: NodeIdentity) -> Bool {
        learn(node) { peer in
            let (new, mustAsk) = peer.interest.answered(all, upTo: number)
            return (new, !mustAsk)
        } ?? false
    }

    /// Publications came from a node; one that was overtaken is lost.
    func received(_ publications: [NodePublication], loop: Int, number: UInt64, from node: NodeIdentity) {
        let isLate =
            learn(node) { peer in
                ([], peer.publications[loop, default: LinkNumbers()].received(number) == .late)
            } ?? true
        if !isLate { plane?.received(publications) }
    }

    /// All that this node has.
    var answer: ClusterAnswer {
        let own = own.value
        return .topics(own.all, upTo: own.last)
    }

    /// Changes what is known of a process.
    ///
    /// - Returns: nil if it has gone, or has not joined yet (``joined(_:)``).
    private func learn<Value: Sendable>(
        _ node: NodeIdentity,
        _ change: (inout Peer) -> (new: [TopicInterest], Value)
    ) -> Value? {
        changePeers { peers, steps in
            guard peers[node.id]?.node == node else { return nil }
            // In its place: a copy would be one of all its filters.
            let (new, value) = change(&peers[node.id, default: Peer(node: node)])
            if !new.isEmpty { steps.append(Learning(interest: new, node: node.id)) }
            return value
        }
    }

    // MARK: Asking

    /// The subscribers of a topic on the other nodes. A node that does not answer has none.
    func subscriberCount(of topic: TopicName) async -> Int {
        await roster.askAll(.subscriberCount(topic)).reduce(0) { sum, answer in
            if case .subscriberCount(let count)? = answer { sum + count } else { sum }
        }
    }

    /// The topics with subscribers on the other nodes, by ``TopicPlane/subscriberCounts(withPrefix:)``.
    func subscriberCounts(withPrefix prefix: String) async -> [TopicName: Int] {
        await roster.askAll(.subscriberCounts(prefix)).reduce(into: [:]) { sums, answer in
            if case .subscriberCounts(let counts)? = answer { sums.merge(counts, uniquingKeysWith: +) }
        }
    }

    /// Removes connections of the other nodes from a room.
    ///
    /// - Returns: how many there were; nil if a node does not answer, so that some may be left.
    package func remove(_ expulsion: RoomExpulsion) async -> Int? {
        let answers = await roster.askAll(.remove(expulsion))
        return answers.reduce(0 as Int?) { sum, answer in
            guard let sum, case .removed(let count)? = answer else { return nil }
            return sum + count
        }
    }

    /// The answer to a question of another node.
    func subscriberCountHere(of topic: TopicName) async -> Int {
        await plane?.subscriberCountHere(of: topic) ?? 0
    }

    func removeHere(_ expulsion: RoomExpulsion) async -> Int {
        await connected.withLock { $0?.remove }?(expulsion) ?? 0
    }

    func subscriberCountsHere(withPrefix prefix: String) async -> [TopicName: Int] {
        await plane?.subscriberCountsHere(withPrefix: prefix).counts ?? [:]
    }
}
