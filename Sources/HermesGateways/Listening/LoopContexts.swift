// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// The loop contexts of a server, one per event loop. They do not change after the start.
package struct LoopContexts: Sendable {
    package let all: [LoopContext]
    /// The topics of all loops together.
    package let topicPlane: TopicPlane
    /// The budget for the memory that the connections of all loops hold.
    package let memory: MemoryBudget
    private let byLoop: [ObjectIdentifier: LoopContext]

    /// - Parameters:
    ///   - memory: the budget for the memory of all connections.
    ///   - ticks: the metrics delegate of the group; nil if it has none. Without a delegate, a loop with a lot of
    ///     work may serve its connections late.
    package init(_ group: any EventLoopGroup, memory: MemoryBudget = MemoryBudget(), ticks: LoopTicks? = nil) {
        let eventLoops = Array(group.makeIterator())
        let boxes = eventLoops.map { _ in WeakLoopContext() }
        let plane = TopicPlane(
            loops: zip(eventLoops, boxes).map { eventLoop, box in
                LoopHandle(
                    execute: { eventLoop.execute($0) },
                    isCurrent: { eventLoop.inEventLoop },
                    hasTime: { box.context?.hasTime() ?? true },
                    inTurn: { work in
                        if let context = box.context { context.inTurn(work) } else { eventLoop.execute(work) }
                    }
                )
            }
        )
        topicPlane = plane
        let reclaimer = MemoryReclaimer(memory)
        let arrivals = ArrivalBudget(loops: eventLoops.count)
        all = zip(eventLoops, boxes).enumerated().map { index, loop in
            let (eventLoop, box) = loop
            return LoopContext(
                eventLoop: eventLoop,
                index: index,
                reclaimer: reclaimer,
                box: box,
                arrivals: arrivals,
                shard: { plane.shard(index) }
            )
        }
        reclaimer.connect(to: all)
        self.memory = memory
        byLoop = Dictionary(uniqueKeysWithValues: all.map { (ObjectIdentifier($0.eventLoop), $0) })
        guard let ticks else { return }
        for context in all { context.turnsFollowTicks() }
        ticks.report(to: byLoop)
    }

    /// Removes connections of this node from a room, and ends their subscriptions to it.
    ///
    /// - Returns: the number of removed connections.
    package func remove(_ expulsion: RoomExpulsion) async -> Int {
        var sum = 0
        for loop in all {
            sum += await withCheckedContinuation { continuation in
                loop.post(.run { loop.remove(expulsion) { continuation.resume(returning: $0) } })
            }
        }
        return sum
    }

    /// The context of a loop; nil for a loop of another group.
    package subscript(_ eventLoop: any EventLoop) -> LoopContext? { byLoop[ObjectIdentifier(eventLoop)] }
}

/// Breaks the cycles between a loop's context and the objects that call it: the mailbox and the loop's topic shard.
final class WeakLoopContext: @unchecked Sendable {  // Written once, before the mailbox is in use.
    weak var context: LoopContext?
}
