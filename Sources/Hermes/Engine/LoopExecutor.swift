// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Runs an actor on an event loop, so that only one thread touches the state of the actor and of the channel handler.
final class LoopExecutor: SerialExecutor {
    let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The closure keeps the executor alive until the job has run.
        eventLoop.execute { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(complexEquality: self) }

    func isSameExclusiveExecutionContext(other: LoopExecutor) -> Bool { eventLoop === other.eventLoop }

    /// Lets `assumeIsolated` work in a channel handler, which runs on the loop but outside of tasks.
    func checkIsolated() { eventLoop.preconditionInEventLoop() }
}
