// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Synchronization

/// Frees memory: collects from all loops how much memory their connections hold, and makes the largest consumers free
/// memory.
///
/// State: a `Mutex` around the loops, which are written once, and another `Mutex` around the answers of each round.
final class MemoryReclaimer: Sendable {
    /// A weak reference, so that neither side keeps the other alive.
    private struct WeakLoop: Sendable {
        weak var context: LoopContext?
    }

    /// The pause before the next round. During this pause, the loops count the freed memory.
    static let pause = TimeAmount.milliseconds(20)

    let budget: MemoryBudget
    private let loops = Mutex<[WeakLoop]>([])

    init(_ budget: MemoryBudget) { self.budget = budget }

    func connect(to contexts: [LoopContext]) {
        loops.withLock { $0 = contexts.map { WeakLoop(context: $0) } }
    }

    /// Begins a round of freeing memory. At most one round runs at a time (``MemoryBudget/change(by:)``).
    func begin() {
        let contexts = loops.withLock { $0.compactMap(\.context) }
        let round = Round(missing: contexts.count)
        for context in contexts {
            context.post(
                .run { [self] in
                    guard let holdings = round.add(context.holdings()) else { return }
                    let before = budget.used
                    collect(holdings)
                    context.eventLoop.scheduleTask(in: Self.pause) { [self] in
                        budget.reclaimEnded()
                        // The chosen connections may have freed less than they seemed to hold. If they freed nothing,
                        // the next report begins another round.
                        if budget.used < before, budget.change(by: 0) { begin() }
                    }
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

    /// The loops' answers so far.
    private final class Round: Sendable {
        private struct State {
            var missing: Int
            var holdings: [MemoryHolding] = []
        }

        private let state: Mutex<State>

        init(missing: Int) { state = Mutex(State(missing: missing)) }

        /// Adds the answer of one loop.
        ///
        /// - Returns: all answers, if this is the last answer; otherwise nil.
        func add(_ holdings: [MemoryHolding]) -> [MemoryHolding]? {
            state.withLock { state in
                state.holdings += holdings
                state.missing -= 1
                return state.missing == 0 ? state.holdings : nil
            }
        }
    }
}

/// The memory of one connection, for the choice of the largest consumer.
struct MemoryHolding: Sendable {
    /// The consumer of memory: all connections of one address together. A connection counts separately if its address
    /// is local or unknown, for example behind a proxy that does not give the client's address.
    enum Consumer: Hashable, Sendable {
        case address(ConnectionCounter.Address)
        case connection(ObjectIdentifier)
    }

    /// The least number of bytes that is worth freeing.
    static let minBytes = 4_096

    let connection: Connection
    let consumer: Consumer
    let bytes: Int

    /// - Parameter sharedPart: the part of the connection's shared bytes that is charged to the connection
    ///   (``SharedFrames/part``).
    /// - Returns: nil if the memory is not worth freeing.
    init?(_ connection: Connection, sharedPart: Double) {
        guard connection.isOpen, connection.heldBytes >= Self.minBytes else { return nil }
        let bytes = connection.ownBytes + Int(Double(connection.sharedBytes) * sharedPart)
        guard bytes >= Self.minBytes else { return nil }
        self.connection = connection
        self.bytes = bytes
        switch connection.budgetAddress {
        case .local, .unknown, .hidden: consumer = .connection(ObjectIdentifier(connection))
        case let address: consumer = .address(address)
        }
    }
}
