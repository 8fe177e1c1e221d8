// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Links the topics of this node with the topics of the other nodes: each node has recorded which filters have
/// subscribers on which nodes, and sends its publications to these nodes. A process that is alone has no such links.
///
/// State: two ``OrderedState``s, one for the changes of the event loops and one for the changes of the other nodes, and
/// a `Mutex` around the plane. No other code is called while a lock is held.
package final class TopicLinks: Sendable {
    /// A message that tells the other nodes of this node's subscribers.
    private struct Telling: Sendable {
        let interest: [TopicInterest]
        let number: UInt64
    }

    /// A change of another node's subscribers, which is passed on to the shards.
    private struct Learning: Sendable {
        let interest: [TopicInterest]
        let node: NodeID
    }

    private struct Peer: Sendable {
        let node: NodeIdentity
        var interest = PeerInterest()
        /// The numbers of the publications that arrived from each event loop of the node.
        var publications: [Int: LinkNumbers] = [:]
    }

    /// Removes connections of this node from a room, and returns their number.
    package typealias RoomRemover = @Sendable (RoomExpulsion) async -> Int

    /// This is a struct and not a tuple: each time a tuple is read from a lock, the function in the tuple is wrapped
    /// once more (``Hook``).
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

    /// Connects the topics of this process. This is called once, before the first subscription.
    package func connect(to plane: TopicPlane, remove: @escaping RoomRemover) {
        plane.connect(to: self)
        connected.withLock { $0 = Connected(plane: plane, remove: remove) }
        // The plane gets the subscribers that were reported before the plane was connected.
        changePeers { peers, steps in
            for (id, peer) in peers { steps.append(Learning(interest: peer.interest.all, node: id)) }
        }
    }

    // MARK: From the shards

    /// Records that subscriptions were added or removed. ``tellChanges()`` reports this to the other nodes. A filter
    /// that begins with `$` is ignored, because topics that begin with `$` concern a single node.
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

    /// Sends publications of an event loop to a node. They are sent as a hint and not as a message, because the loss of
    /// a message would cause a repair.
    func send(_ publications: [NodePublication], loop: Int, number: UInt64, to node: NodeID) {
        roster.bus.hint(.publications(publications, loop: loop, number: number), to: NodeSet(node))
    }

    // MARK: From the other nodes

    /// Records that a process has joined, perhaps in the place of an earlier process. The new process must be asked for
    /// its subscribers.
    func joined(_ node: NodeIdentity) {
        changePeers { peers, steps in
            if let known = peers[node.id] {
                guard known.node.epoch < node.epoch else { return }
                steps.append(Learning(interest: known.interest.none, node: node.id))
            }
            peers[node.id] = Peer(node: node)
        }
    }

    /// Forgets a process that has gone.
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

    /// Delivers publications that arrived from a node. If later publications of the same loop have overtaken them,
    /// drops them.
    func received(_ publications: [NodePublication], loop: Int, number: UInt64, from node: NodeIdentity) {
        let isLate =
            learn(node) { peer in
                ([], peer.publications[loop, default: LinkNumbers()].received(number) == .late)
            } ?? true
        if !isLate { plane?.received(publications) }
    }

    /// The answer that contains all subscribers of this node.
    var answer: ClusterAnswer {
        let own = own.value
        return .topics(own.all, upTo: own.last)
    }

    /// Changes the data about a process.
    ///
    /// - Returns: nil if the process has gone, or has not joined yet (``joined(_:)``).
    private func learn<Value: Sendable>(
        _ node: NodeIdentity,
        _ change: (inout Peer) -> (new: [TopicInterest], Value)
    ) -> Value? {
        changePeers { peers, steps in
            guard peers[node.id]?.node == node else { return nil }
            // The value is changed in place, because a copy would copy all filters of the node.
            let (new, value) = change(&peers[node.id, default: Peer(node: node)])
            if !new.isEmpty { steps.append(Learning(interest: new, node: node.id)) }
            return value
        }
    }

    // MARK: Asking

    /// Returns the number of subscribers of a topic on the other nodes. A node that does not answer counts as a node
    /// without subscribers.
    func subscriberCount(of topic: TopicName) async -> Int {
        await roster.askAll(.subscriberCount(topic)).reduce(0) { sum, answer in
            if case .subscriberCount(let count)? = answer { sum + count } else { sum }
        }
    }

    /// Returns the topics with subscribers on the other nodes, in the form of
    /// ``TopicPlane/subscriberCounts(withPrefix:)``.
    func subscriberCounts(withPrefix prefix: String) async -> [TopicName: Int] {
        await roster.askAll(.subscriberCounts(prefix)).reduce(into: [:]) { sums, answer in
            if case .subscriberCounts(let counts)? = answer { sums.merge(counts, uniquingKeysWith: +) }
        }
    }

    /// Removes connections of the other nodes from a room.
    ///
    /// - Returns: the number of these connections; nil if a node does not answer, so that some connections may be left.
    package func remove(_ expulsion: RoomExpulsion) async -> Int? {
        let answers = await roster.askAll(.remove(expulsion))
        return answers.reduce(0 as Int?) { sum, answer in
            guard let sum, case .removed(let count)? = answer else { return nil }
            return sum + count
        }
    }

    /// Returns the number of subscribers of a topic on this node, for another node that asks.
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
