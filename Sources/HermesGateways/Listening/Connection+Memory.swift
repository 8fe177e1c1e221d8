// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Synchronization

/// Memory: what a connection holds, and what becomes of it if that is too much.
extension Connection {
    /// What a frame that waits takes beside its bytes.
    static let frameOverhead = 64

    /// Tells the loop what is held now, if that has changed.
    func measureMemory() {
        // What ends is given back already: nobody else has to pay for it.
        let bytes =
            phase != .open
            ? 0 : queue.bytes &+ queue.count &* Self.frameOverhead &+ unreadBytes &+ sessionBytes &+ unansweredBytes
        guard bytes != heldBytes else { return }
        let change = bytes &- heldBytes
        heldBytes = bytes
        loop.heldChanged(by: change)
    }

    /// What the handler keeps of frames that are not whole, or not looked at yet, in bytes.
    func unreadHolds(_ bytes: Int) {
        guard bytes != unreadBytes else { return }
        unreadBytes = bytes
        measureMemory()
    }

    /// What the session keeps for the peer: messages that wait, or may have to go to somebody else; in bytes, about.
    package func sessionHolds(_ bytes: Int) {
        guard bytes != sessionBytes else { return }
        sessionBytes = bytes
        measureMemory()
    }

    /// This connection holds too much. What may be left out is; if most of it may not, the connection ends.
    func payForMemory() {
        guard phase == .open, heldBytes > 0 else { return }
        let before = heldBytes
        listener.metrics.dropped(queue.dropWhatMayGo())
        measureMemory()
        if heldBytes > before / 2 { end(.memory) }
        measureMemory()
        loop.reclaimer.budget.gaveBack(before - heldBytes)
    }
}

extension CloseReason {
    static let memoryText = "what waits for this connection takes the most of the server's memory (limits.memory)"
    static let rateText = "asked for more than limits.requestsPerSecond allows for longer than limits.throttled"
}

/// What one connection holds, for the choice of who pays.
struct MemoryHolding: Sendable {
    /// Those of one address stand for each other; behind a proxy that does not tell, everybody for itself.
    enum Consumer: Hashable, Sendable {
        case address(ConnectionCounter.Address)
        case connection(ObjectIdentifier)
    }

    /// What is not worth giving back.
    static let minBytes = 4_096

    let connection: Connection
    let consumer: Consumer
    let bytes: Int

    init(_ connection: Connection) {
        self.connection = connection
        bytes = connection.heldBytes
        switch connection.budgetAddress {
        case .local, .unknown: consumer = .connection(ObjectIdentifier(connection))
        case let address: consumer = .address(address)
        }
    }
}

/// Sees to it that memory is given back: asks all loops who holds what, and has those pay who hold the most.
///
/// State: a `Mutex` around the loops, written once, and one around each round.
final class MemoryReclaimer: Sendable {
    /// The loops' own word for it, so that neither keeps the other alive.
    private struct WeakLoop: Sendable {
        weak var context: LoopContext?
    }

    /// Until the next round may begin: what is freed has to be seen first.
    static let pause = TimeAmount.milliseconds(20)

    let budget: MemoryBudget
    private let loops = Mutex<[WeakLoop]>([])

    init(_ budget: MemoryBudget) { self.budget = budget }

    func connect(to contexts: [LoopContext]) {
        loops.withLock { $0 = contexts.map { WeakLoop(context: $0) } }
    }

    /// Begins a round; at most one runs (``MemoryBudget/change(by:)``).
    func begin() {
        let contexts = loops.withLock { $0.compactMap(\.context) }
        let round = Round(missing: contexts.count)
        for context in contexts {
            context.post(
                .run { [self] in
                    guard let holdings = round.add(context.holdings()) else { return }
                    collect(holdings)
                    context.eventLoop.scheduleTask(in: Self.pause) { self.budget.reclaimEnded() }
                }
            )
        }
    }

    private func collect(_ holdings: [MemoryHolding]) {
        let victims = MemoryReclaim.victims(of: holdings.map { ($0.consumer, $0.bytes) }, toFree: budget.excess)
        for index in victims {
            let connection = holdings[index].connection
            connection.loop.post(.run { connection.payForMemory() })
        }
    }

    /// What the loops have told so far.
    private final class Round: Sendable {
        private struct State {
            var missing: Int
            var holdings: [MemoryHolding] = []
        }

        private let state: Mutex<State>

        init(missing: Int) { state = Mutex(State(missing: missing)) }

        /// - Returns: all of it, to the last who tells.
        func add(_ holdings: [MemoryHolding]) -> [MemoryHolding]? {
            state.withLock { state in
                state.holdings += holdings
                state.missing -= 1
                return state.missing == 0 ? state.holdings : nil
            }
        }
    }
}
