// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// A network between several nodes in one process. It loses, delays and repeats messages at random; a seed makes this
/// repeatable. Only a test moves the network's clock.
///
/// State: a `Mutex` around a struct. Receivers are called outside the lock, on the thread that moves the clock.
package final class MemoryNetwork: Sendable {
    /// The faults of messages. All values except the delay are probabilities in percent.
    package struct Faults: Sendable {
        package var lost: Int
        package var repeated: Int
        package var unanswered: Int
        /// The longest delay of a message, in milliseconds. Each delay is random, so that later messages may overtake
        /// earlier ones.
        package var maxDelayMilliseconds: Int

        package static let none = Faults(lost: 0, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0)

        package init(lost: Int, repeated: Int, unanswered: Int, maxDelayMilliseconds: Int) {
            self.lost = lost
            self.repeated = repeated
            self.unanswered = unanswered
            self.maxDelayMilliseconds = maxDelayMilliseconds
        }
    }

    fileprivate enum Body: Sendable {
        case message(ClusterMessage, number: UInt64)
        case beat(UInt64)
        case hint(ClusterHint)
    }

    private struct Link: Hashable {
        let from: NodeIdentity
        let to: NodeID
    }

    private struct Packet {
        let link: Link
        let body: Body
        let due: Duration
        let order: UInt64
    }

    private struct State {
        var random: SplitMix
        var faults: Faults
        /// For each node, the nodes that receive nothing from it.
        var interrupted: [NodeID: NodeSet] = [:]
        var now = Duration.zero
        var order: UInt64 = 0
        var packets: [Packet] = []
        var sent: [Link: UInt64] = [:]
        var received: [Link: LinkNumbers] = [:]
        var receivers: [NodeID: (node: NodeIdentity, receiver: any BusReceiver)] = [:]
        var published: UInt64 = 0
        var hinted: UInt64 = 0

        mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

        func isInterrupted(_ from: NodeID, _ to: NodeID) -> Bool { interrupted[from]?.contains(to) ?? false }

        mutating func add(_ body: Body, _ link: Link) {
            guard receivers[link.from.id]?.node == link.from, !isInterrupted(link.from.id, link.to) else { return }
            guard !happens(faults.lost) else { return }
            for _ in 0..<(happens(faults.repeated) ? 2 : 1) {
                order += 1
                let delay = Duration.milliseconds(Int.random(in: 0...faults.maxDelayMilliseconds, using: &random))
                packets.append(Packet(link: link, body: body, due: now + delay, order: order))
            }
        }

        mutating func takeDue() -> Packet? {
            let due = packets.indices.filter { packets[$0].due <= now }
            let first = due.min { (packets[$0].due, packets[$0].order) < (packets[$1].due, packets[$1].order) }
            return first.map { packets.remove(at: $0) }
        }
    }

    private let state: Mutex<State>

    package init(seed: UInt64 = 1, faults: Faults = .none) {
        state = Mutex(State(random: SplitMix(state: seed), faults: faults))
    }

    /// Returns the bus of a node.
    package func bus(of node: NodeIdentity) -> MemoryBus { MemoryBus(node: node, network: self) }

    package func set(_ faults: Faults) { state.withLock { $0.faults = faults } }

    /// From now on, `nodes` receive no messages and no answers from `node`. All other nodes receive both.
    package func interrupt(_ node: NodeID, to nodes: NodeSet) { state.withLock { $0.interrupted[node] = nodes } }

    /// The number of published messages. A message counts once for each node to which it was published.
    package var published: UInt64 { state.withLock { $0.published } }

    /// The number of hints. A hint counts once for each node to which it was sent.
    package var hinted: UInt64 { state.withLock { $0.hinted } }

    /// Cuts a node off: nothing goes to or from it any more, as if its process had crashed.
    package func cut(_ node: NodeID) {
        state.withLock { state in
            state.receivers[node] = nil
            state.packets.removeAll { $0.link.from.id == node || $0.link.to == node }
        }
    }

    /// Moves the clock, and delivers everything that is due.
    package func advance(by duration: Duration) {
        state.withLock { $0.now += duration }
        while let packet = state.withLock({ $0.takeDue() }) { give(packet) }
    }

    /// Delivers everything that is in transit, and everything that is sent in response.
    package func settle() {
        while let last = state.withLock({ state in state.packets.map { $0.due - state.now }.max() }) {
            advance(by: max(last, .zero))
        }
    }

    private func give(_ packet: Packet) {
        let (receiver, isGap, isNew) = state.withLock { state -> ((any BusReceiver)?, Bool, Bool) in
            let receiver = state.receivers[packet.link.to]?.receiver
            switch packet.body {
            case .message(_, let number):
                let arrival = state.received[packet.link, default: LinkNumbers()].received(number)
                return (receiver, arrival == .afterGap, arrival != .late)
            case .beat(let number):
                return (receiver, state.received[packet.link, default: LinkNumbers()].beat(number), false)
            case .hint:
                return (receiver, false, true)
            }
        }
        guard let receiver else { return }
        if isGap { receiver.missed(from: packet.link.from) }
        guard isNew else { return }
        switch packet.body {
        case .message(let message, _): receiver.received(message, from: packet.link.from)
        case .hint(let hint): receiver.hinted(hint, from: packet.link.from)
        case .beat: break
        }
    }

    // MARK: For the buses

    fileprivate func start(_ node: NodeIdentity, _ receiver: any BusReceiver) {
        state.withLock { $0.receivers[node.id] = (node, receiver) }
    }

    fileprivate func stop(_ node: NodeIdentity) {
        state.withLock { state in
            if state.receivers[node.id]?.node == node { state.receivers[node.id] = nil }
        }
    }

    fileprivate func publish(_ message: ClusterMessage, _ from: NodeIdentity, _ nodes: NodeSet) {
        state.withLock { state in
            for node in nodes.nodes {
                let link = Link(from: from, to: node)
                let number = (state.sent[link] ?? 0) + 1
                state.sent[link] = number
                state.published += 1
                state.add(.message(message, number: number), link)
            }
        }
    }

    fileprivate func beat(_ from: NodeIdentity, _ nodes: NodeSet) {
        state.withLock { state in
            for node in nodes.nodes {
                let link = Link(from: from, to: node)
                state.add(.beat(state.sent[link] ?? 0), link)
            }
        }
    }

    fileprivate func hint(_ hint: ClusterHint, _ from: NodeIdentity, _ nodes: NodeSet) {
        state.withLock { state in
            for node in nodes.nodes {
                state.hinted += 1
                state.add(.hint(hint), Link(from: from, to: node))
            }
        }
    }

    fileprivate func ask(_ question: ClusterQuestion, _ from: NodeIdentity, _ node: NodeID) async -> ClusterAnswer? {
        let (receiver, isLost) = state.withLock { state -> ((any BusReceiver)?, Bool) in
            guard state.receivers[from.id]?.node == from, !state.isInterrupted(from.id, node),
                !state.isInterrupted(node, from.id)
            else { return (nil, true) }
            let isLost = state.happens(state.faults.unanswered)
            // A loss concerns either the question or the answer.
            return (isLost && state.happens(50) ? nil : state.receivers[node]?.receiver, isLost)
        }
        let answer = await receiver?.answer(to: question, from: from)
        return isLost ? nil : answer
    }
}

/// The bus of one node of a ``MemoryNetwork``.
package struct MemoryBus: ClusterBus {
    fileprivate let identity: NodeIdentity
    private let network: MemoryNetwork

    fileprivate init(node: NodeIdentity, network: MemoryNetwork) {
        identity = node
        self.network = network
    }

    package var node: NodeIdentity? { identity }

    package func start(_ receiver: any BusReceiver) { network.start(identity, receiver) }

    package func publish(_ message: ClusterMessage, to nodes: NodeSet) { network.publish(message, identity, nodes) }

    package func beat(to nodes: NodeSet) { network.beat(identity, nodes) }

    package func hint(_ hint: ClusterHint, to nodes: NodeSet) { network.hint(hint, identity, nodes) }

    /// Returns nil at once if the question or the answer is lost. There is no time-out to wait for, because the clock
    /// does not move by itself.
    package func ask(_ question: ClusterQuestion, of node: NodeID) async -> ClusterAnswer? {
        await network.ask(question, identity, node)
    }

    package func stop() { network.stop(identity) }
}
