// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Synchronization

/// Memory: what a connection holds, and the consequences if that is too much.
extension Connection {
    /// The overhead of a waiting frame, in bytes.
    static let frameOverhead = 64

    /// Reports the held memory to the loop, if it has changed.
    func measureMemory() {
        // An ending connection's memory counts as freed, so that no other connection pays for it.
        let bytes =
            phase != .open
            ? 0
            : queue.bytes &+ queue.count &* Self.frameOverhead &+ unreadBytes &+ sessionBytes &+ unansweredBytes
                &+ encryptedBytes
        guard bytes != heldBytes else { return }
        let change = bytes &- heldBytes
        heldBytes = bytes
        loop.heldChanged(by: change)
    }

    /// Counts a large frame until the system has it, if TLS makes a copy of it.
    ///
    /// - Returns: the promise of its write; nil: it is not counted.
    func countEncrypted(_ bytes: Int) -> EventLoopPromise<Void>? {
        guard isOutputCopied else { return nil }
        encryptedBytes &+= bytes
        measureMemory()
        let written = loop.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            self.encryptedBytes &-= bytes
            self.measureMemory()
        }
        return written
    }

    /// The bytes of incomplete or unexamined frames in the handler.
    func unreadHolds(_ bytes: Int) {
        guard bytes != unreadBytes else { return }
        unreadBytes = bytes
        measureMemory()
    }

    /// The approximate bytes that the session keeps for the peer: messages that wait, or may go to another member.
    package func sessionHolds(_ bytes: Int) {
        guard bytes != sessionBytes else { return }
        sessionBytes = bytes
        measureMemory()
    }

    /// Frees memory: drops what may be dropped; if that is less than half, ends the connection.
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
    static let memoryText = "this connection holds the most memory, and memory is short (limits.memory)"
    static let rateText = "exceeded limits.requestsPerSecond for longer than limits.throttled"
}

/// The memory of one connection, for the choice of the largest consumer.
struct MemoryHolding: Sendable {
    /// Connections of one address count together; behind a proxy that gives no address, each counts alone.
    enum Consumer: Hashable, Sendable {
        case address(ConnectionCounter.Address)
        case connection(ObjectIdentifier)
    }

    /// The least that is worth freeing.
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

/// Frees memory: asks all loops for their connections' holdings, and makes the largest consumers pay.
///
/// State: a `Mutex` around the loops, written once, and one around each round.
final class MemoryReclaimer: Sendable {
    /// A weak reference, so that neither side keeps the other alive.
    private struct WeakLoop: Sendable {
        weak var context: LoopContext?
    }

    /// The pause before the next round, so that freed memory is counted first.
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

    /// The loops' answers so far.
    private final class Round: Sendable {
        private struct State {
            var missing: Int
            var holdings: [MemoryHolding] = []
        }

        private let state: Mutex<State>

        init(missing: Int) { state = Mutex(State(missing: missing)) }

        /// - Returns: all answers, to the last caller.
        func add(_ holdings: [MemoryHolding]) -> [MemoryHolding]? {
            state.withLock { state in
                state.holdings += holdings
                state.missing -= 1
                return state.missing == 0 ? state.holdings : nil
            }
        }
    }
}
