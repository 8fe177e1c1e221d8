// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesCore
import NIOCore
import Synchronization

/// Loops that run on the test's own thread, and only when the test runs them.
final class ManualLoops {
    final class Loop: Sendable {
        fileprivate let queue = Mutex<[@Sendable () -> Void]>([])
        fileprivate let isRunning = Mutex(false)
        fileprivate let scheduled = Mutex(0)
        /// The number of checks of the time that find time left; nil if all checks do.
        let looksWithTime = Mutex<Int?>(nil)

        var handle: LoopHandle {
            LoopHandle(
                execute: { work in
                    self.queue.withLock { $0.append(work) }
                    self.scheduled.withLock { $0 += 1 }
                },
                isCurrent: { self.isRunning.withLock { $0 } },
                hasTime: {
                    self.looksWithTime.withLock { looks in
                        guard let left = looks else { return true }
                        looks = max(0, left - 1)
                        return left > 0
                    }
                }
            )
        }

        /// The number of times that work was scheduled so far.
        var scheduleCount: Int { scheduled.withLock { $0 } }

        /// Runs `body` as if on the loop.
        func run<Value>(_ body: () throws -> Value) rethrows -> Value {
            isRunning.withLock { $0 = true }
            defer { isRunning.withLock { $0 = false } }
            return try body()
        }

        /// Runs the scheduled work once.
        func tick() {
            let work = queue.withLock { queue in
                defer { queue = [] }
                return queue
            }
            run { for item in work { item() } }
        }

        var isIdle: Bool { queue.withLock { $0.isEmpty } }
    }

    let loops: [Loop]
    let plane: TopicPlane

    init(_ count: Int, maxBacklogBytes: Int = 64 << 20, limits: TopicLimits = TopicLimits()) {
        loops = (0..<count).map { _ in Loop() }
        plane = TopicPlane(loops: loops.map(\.handle), maxBacklogBytes: maxBacklogBytes, limits: limits)
    }

    subscript(_ index: Int) -> Loop { loops[index] }

    func shard(_ index: Int) -> TopicShard { loops[index].run { plane.shard(index) } }

    /// Runs all loops until nothing is scheduled.
    func settle() {
        while !loops.allSatisfy(\.isIdle) { for loop in loops { loop.tick() } }
    }
}

/// A loop with its own thread.
struct QueueLoop {
    private static let key = DispatchSpecificKey<Int>()
    let queue: DispatchQueue
    let handle: LoopHandle

    init(_ number: Int) {
        let queue = DispatchQueue(label: "loop \(number)")
        queue.setSpecific(key: Self.key, value: number)
        self.queue = queue
        handle = LoopHandle(
            execute: { work in queue.async { work() } },
            isCurrent: { DispatchQueue.getSpecific(key: Self.key) == number }
        )
    }
}

/// A subscriber that records the payloads of the publications that it gets.
final class RecordingSubscriber: TopicSubscriber {
    var received: [String] = []
    /// The options of the subscriptions that the deliveries were for.
    var options: [SubscriptionOptions] = []
    /// The options for the subscriber's own publications; nil if these are left out.
    var ownOptions: [SubscriptionOptions?] = []
    var onDelivery: ((Delivery) -> Void)?

    func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        received.append(String(buffer: delivery.publication.payload))
        options.append(subscription.options)
        ownOptions.append(subscription.isOwnApart ? subscription.own?.options : subscription.options)
        onDelivery?(delivery)
    }
}
