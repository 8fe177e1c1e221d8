// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Synchronization

/// Memory: how much a connection holds, and what happens if all connections hold too much.
extension Connection {
    /// The overhead of a waiting frame, in bytes.
    static let frameOverhead = 64

    /// The size in bytes from which a write is counted as memory until the operating system has taken it. Smaller
    /// writes are counted only if several of them wait (``heldWrites``).
    static let countWrittenFrom = 65_536
    /// The approximate memory of the small writes that waited, without being counted, before the first held write.
    private static let bytesBeforeHeld = flushesPerLook * BufferPool.newBufferBytes

    /// Reports the held memory to the loop, if it has changed.
    func measureMemory() {
        // An ending connection's memory counts as freed, so that no other connection pays for it.
        let isOpen = phase == .open
        let own =
            !isOpen
            ? 0
            : queue.bytes &+ queue.count &* Self.frameOverhead &+ unreadBytes &+ sessionBytes
                &+ unansweredBytes &+ (backlog?.ownBytes ?? 0) &+ heldBufferBytes
        heldBytes = isOpen ? own &+ sharedBytes : 0
        guard own != ownBytes else { return }
        let change = own &- ownBytes
        ownBytes = own
        loop.heldChanged(by: change)
    }

    /// The memory of the buffers of held writes, and of the output that is collected behind them.
    private var heldBufferBytes: Int {
        guard heldWrites > 0 else { return 0 }
        return (backlog?.heldWriteBytes ?? 0) &+ pending.storageCapacity &+ Self.bytesBeforeHeld
    }

    /// Counts a large write, or a frame of which TLS makes a copy, as memory until the operating system has taken it.
    /// Bytes that connections of a loop share count once in the loop's sum. When the connections that must free memory
    /// are chosen, each connection counts with its part of the shared bytes (``SharedFrames/part``).
    ///
    /// - Parameter isOwn: whether no other connection shares the bytes.
    /// - Returns: the promise for the write; nil if the bytes are not counted.
    func countWritten(_ frame: ByteBuffer, isOwn: Bool = false) -> EventLoopPromise<Void>? {
        let bytes = frame.readableBytes
        guard bytes >= Self.countWrittenFrom || (isOutputCopied && !isOwn && bytes > Self.shareAbove) else {
            return nil
        }
        let written = loop.eventLoop.makePromise(of: Void.self)
        let backlog = ensureBacklog()
        if isOwn || isOutputCopied {
            backlog.writtenBytes &+= bytes
            written.futureResult.whenComplete { _ in
                self.backlog?.writtenBytes &-= bytes
                self.measureMemory()
            }
        } else {
            let place = frame.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
            backlog.sharedBytes &+= bytes
            loop.holdsShared(place, bytes: bytes)
            written.futureResult.whenComplete { _ in
                self.backlog?.sharedBytes &-= bytes
                self.loop.releasesShared(place)
                self.measureMemory()
            }
        }
        measureMemory()
        return written
    }

    /// Sets the bytes of incomplete or unexamined frames that the handler holds.
    func unreadHolds(_ bytes: Int) {
        guard bytes != unreadBytes else { return }
        unreadBytes = bytes
        measureMemory()
    }

    /// Sets the approximate number of bytes that the gateway keeps for the peer: messages that wait, or that may go to
    /// another member of a shared subscription.
    package func sessionHolds(_ bytes: Int) {
        let change = bytes &- sessionBytes
        guard change != 0 else { return }
        sessionBytes = bytes
        guard phase == .open else { return measureMemory() }
        // Not measured anew: these bytes change with each message.
        ownBytes &+= change
        heldBytes &+= change
        loop.heldChanged(by: change)
    }

    /// Sets the number of users whose presence the connection watches.
    func watches(_ count: Int) {
        let bytes = count &* DeviceRegistry.bytesOfWatched
        guard bytes != backlog?.watchedBytes ?? 0 else { return }
        ensureBacklog().watchedBytes = bytes
        measureMemory()
    }

    /// Frees memory: drops the waiting frames that may be dropped. If more than half of the memory remains, ends the
    /// connection.
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
    /// The consumer of memory: all connections of one address together. A connection counts alone if its address is
    /// local or unknown, for example behind a proxy that does not give the client's address.
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
        case .local, .unknown: consumer = .connection(ObjectIdentifier(connection))
        case let address: consumer = .address(address)
        }
    }
}

/// Frees memory: collects from all loops how much memory their connections hold, and makes the largest consumers free
/// memory.
///
/// State: a `Mutex` around the loops, which are written once, and one around the answers of each round.
final class MemoryReclaimer: Sendable {
    /// A weak reference, so that neither side keeps the other alive.
    private struct WeakLoop: Sendable {
        weak var context: LoopContext?
    }

    /// The pause before the next round, in which the loops count the freed memory.
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
