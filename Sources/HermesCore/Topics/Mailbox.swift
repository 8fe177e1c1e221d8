// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Passes elements from any thread to an event loop. Many posts cost only one wake-up of the loop.
///
/// State: a ``Locked`` around an array; no other code is called while it is locked. Elements of one poster arrive in
/// order. The mailbox has no limit, because each poster has a limit, such as the committer's batch or a connection's
/// window.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State: Sendable {
        var elements: [Element] = []
        var isScheduled = false
    }

    private let state = Locked(State())
    private let schedule: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let receive: @Sendable ([Element]) -> Void

    /// Creates a mailbox.
    ///
    /// - Parameters:
    ///   - schedule: runs its argument on the loop later; usually `loop.execute`.
    ///   - receive: called on the loop with all elements since the last call; there is at least one element.
    package init(
        schedule: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        receive: @escaping @Sendable ([Element]) -> Void
    ) {
        self.schedule = schedule
        self.receive = receive
    }

    /// Posts one element, from any thread.
    package func post(_ element: Element) {
        let mustSchedule = state.withLock { state in
            state.elements.append(element)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { schedule { self.drain() } }
    }

    /// Delivers the waiting elements; called on the loop.
    package func drain() {
        let batch = state.withLock { state in
            let batch = state.elements
            state.elements = []
            state.isScheduled = false
            return batch
        }
        if !batch.isEmpty { receive(batch) }
    }
}

extension Mailbox where Element == @Sendable () -> Void {
    /// Creates a mailbox whose elements are work for the loop.
    package convenience init(schedule: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.init(schedule: schedule) { batch in
            for work in batch { work() }
        }
    }
}
