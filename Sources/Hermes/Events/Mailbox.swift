// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import NIOConcurrencyHelpers

/// A bounded queue of the elements that wait for one loop. If there is no room for an element, the element is dropped.
///
/// A lock protects the state.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements = Deque<(element: Element, bytes: Int)>()
        var bytes = 0
        var isFinished = false
        var waiters = Deque<(id: UInt64, continuation: CheckedContinuation<Element?, Never>)>()
        var lastWaiter: UInt64 = 0
        /// Waiters whose tasks were cancelled before they waited.
        var cancelled: Set<UInt64> = []
    }

    private let maxElements: Int
    private let maxBytes: Int
    private let state = NIOLockedValueBox(State())

    /// Creates an empty mailbox.
    ///
    /// - Parameters:
    ///   - maxElements: the largest number of elements that wait.
    ///   - maxBytes: the largest total size of the elements that wait, in bytes.
    init(maxElements: Int, maxBytes: Int) {
        self.maxElements = maxElements
        self.maxBytes = maxBytes
    }

    /// Hands an element to the loop, at once or when the loop asks for it.
    ///
    /// - Parameters:
    ///   - element: the element.
    ///   - bytes: an estimate of the memory that the element takes while it waits.
    ///   - isBounded: whether the element is dropped if there is no room. If not, the caller limits these elements in
    ///     another way.
    /// - Returns: false if the element was dropped, because there is no room or the mailbox is finished.
    func offer(_ element: Element, bytes: Int = 0, isBounded: Bool = true) -> Bool {
        let (isTaken, waiter) = state.withLockedValue { state -> (Bool, CheckedContinuation<Element?, Never>?) in
            guard !state.isFinished else { return (false, nil) }
            if let waiter = state.waiters.popFirst() { return (true, waiter.continuation) }
            let hasRoom = state.elements.count < maxElements && state.bytes + bytes <= maxBytes
            guard hasRoom || !isBounded else { return (false, nil) }
            state.elements.append((element, bytes))
            state.bytes += bytes
            return (true, nil)
        }
        waiter?.resume(returning: element)
        return isTaken
    }

    /// Waits for the next element.
    ///
    /// - Returns: nil if the mailbox is finished and empty, or the task is cancelled.
    func next() async -> Element? {
        let id = state.withLockedValue { state in
            state.lastWaiter &+= 1
            return state.lastWaiter
        }
        // If the task is cancelled after it got its element, `onCancel` adds the number to `cancelled`. The number is
        // not used again, so it is removed.
        defer { state.withLockedValue { _ = $0.cancelled.remove(id) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready = state.withLockedValue { state -> Element?? in
                    if state.cancelled.remove(id) != nil { return .some(nil) }
                    if let next = state.elements.popFirst() {
                        state.bytes -= next.bytes
                        return .some(next.element)
                    }
                    if state.isFinished { return .some(nil) }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if case .some(let element) = ready { continuation.resume(returning: element) }
            }
        } onCancel: {
            let waiter = state.withLockedValue { state -> CheckedContinuation<Element?, Never>? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index).continuation
            }
            waiter?.resume(returning: nil)
        }
    }

    /// Removes and returns the waiting elements.
    @discardableResult
    func removeAll() -> [Element] {
        state.withLockedValue { state in
            defer {
                state.elements = []
                state.bytes = 0
            }
            return state.elements.map(\.element)
        }
    }

    /// Lets the loop end after it has taken the waiting elements.
    func finish() {
        let waiters = state.withLockedValue { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }
}
