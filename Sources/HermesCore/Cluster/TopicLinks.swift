// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The topics of this node and the others: each knows which filters have subscribers where, and sends its publications
/// there. A process that is alone has none.
///
/// State: a `Mutex` around a struct; nothing is called under it. What follows from a change is done outside of it, in
/// the order of the changes, by one thread at a time.
package final class TopicLinks: Sendable {
    private enum Step: Sendable {
        /// The others hear of this node's subscribers.
        case tell([TopicInterest], number: UInt64)
        /// The shards hear of another node's subscribers.
        case learn([TopicInterest], NodeID)
    }

    private struct State: Sendable {
        var own = OwnInterest()
        var peers: [NodeID: PeerInterest] = [:]
        var steps: [Step] = []
        var isStepping = false
        /// Nil before the first connection: then nothing is published.
        var plane: TopicPlane?
    }

    private let roster: ClusterRoster
    private let state = Mutex(State())

    init(_ roster: ClusterRoster) { self.roster = roster }

    /// The topics of this process; called once, before the first subscription.
    package func connect(to plane: TopicPlane) {
        plane.connect(to: self)
        state.withLock { $0.plane = plane }
        step()
    }

    // MARK: From the shards

    /// Subscriptions were added or removed. The others hear of it with ``tellChanges()``, unless the topics are about one
    /// node: those begin with `$`.
    func change(_ key: TopicInterest.Key, by count: Int) {
        guard key.filter.rawValue.utf8.first != UInt8(ascii: "$") else { return }
        state.withLock { $0.own.change(key, by: count) }
    }

    func tellChanges() {
        let hasChanges = state.withLock { state in
            guard let changes = state.own.takeChanges() else { return false }
            state.steps.append(.tell(changes.interest, number: changes.number))
            return true
        }
        if hasChanges { step() }
    }

    func send(_ publications: [NodePublication], to node: NodeID) {
        roster.bus.publish(.publications(publications), to: NodeSet(node))
    }

    // MARK: From the other nodes

    /// Another process has come, or takes the place of an earlier one. It must be asked.
    func joined(_ node: NodeID) { left(node) }

    func left(_ node: NodeID) {
        learn(node) { ($0.ended(), ()) }
    }

    /// - Returns: false if the node must be asked.
    func told(_ interest: [TopicInterest], number: UInt64, by node: NodeID) -> Bool {
        learn(node) { peer in
            let new = peer.told(interest, number: number)
            return (new ?? [], new != nil)
        }
    }

    /// - Returns: false if the node must be asked again.
    func answered(_ all: [TopicInterest], upTo number: UInt64, by node: NodeID) -> Bool {
        learn(node) { peer in
            let (new, mustAsk) = peer.answered(all, upTo: number)
            return (new, !mustAsk)
        }
    }

    func received(_ publications: [NodePublication]) { state.withLock { $0.plane }?.received(publications) }

    /// All that this node has.
    var answer: ClusterAnswer { state.withLock { .topics($0.own.all, upTo: $0.own.last) } }

    private func learn<Value>(_ node: NodeID, _ change: (inout PeerInterest) -> ([TopicInterest], Value)) -> Value {
        let value = state.withLock { state in
            let (new, value) = change(&state.peers[node, default: PeerInterest()])
            if !new.isEmpty { state.steps.append(.learn(new, node)) }
            return value
        }
        step()
        return value
    }

    // MARK: Steps

    private func step() {
        while let (steps, plane) = takeSteps() {
            for step in steps {
                switch step {
                case .tell(let interest, let number):
                    roster.bus.publish(.topics(interest, number: number), to: roster.peers)
                case .learn(let interest, let node): plane.learn(interest, of: node)
                }
            }
            state.withLock { $0.isStepping = false }
        }
    }

    private func takeSteps() -> ([Step], TopicPlane)? {
        state.withLock { state in
            guard let plane = state.plane, !state.isStepping, !state.steps.isEmpty else { return nil }
            defer { state.steps = [] }
            state.isStepping = true
            return (state.steps, plane)
        }
    }

    // MARK: Asking

    /// The subscribers of a topic on the other nodes. A node that does not answer has none.
    func subscriberCount(of topic: TopicName) async -> Int {
        var sum = 0
        for node in roster.peers.nodes {
            if case .subscriberCount(let count)? = await roster.bus.ask(.subscriberCount(topic), of: node) {
                sum += count
            }
        }
        return sum
    }

    /// The topics with subscribers on the other nodes, by ``TopicPlane/subscriberCounts(withPrefix:)``.
    func subscriberCounts(withPrefix prefix: String) async -> [TopicName: Int] {
        var sums: [TopicName: Int] = [:]
        for node in roster.peers.nodes {
            if case .subscriberCounts(let counts)? = await roster.bus.ask(.subscriberCounts(prefix), of: node) {
                sums.merge(counts, uniquingKeysWith: +)
            }
        }
        return sums
    }

    /// The answer to a question of another node.
    func subscriberCountHere(of topic: TopicName) async -> Int {
        await state.withLock { $0.plane }?.subscriberCountHere(of: topic) ?? 0
    }

    func subscriberCountsHere(withPrefix prefix: String) async -> [TopicName: Int] {
        await state.withLock { $0.plane }?.subscriberCountsHere(withPrefix: prefix).counts ?? [:]
    }
}
