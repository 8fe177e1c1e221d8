// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A kind of event, and its observers. Observers are functions that are called for each event, in the order in which
/// they were added.
///
/// Do not keep a function directly in a `Mutex`. Each access adds two wrappers around the function. The wrappers
/// convert the function to the form of a generic value and back. So each call to the function is slower than the
/// previous call, until the stack overflows.
///
/// State: a `Mutex`; nothing is called while it is locked.
package final class Hook<Event: Sendable>: Sendable {
    private let observers = Mutex<[@Sendable (Event) -> Void]>([])

    package init() {}

    /// Adds an observer. It is called on the thread on which the event happens, and must not block.
    package func observe(_ observer: @escaping @Sendable (Event) -> Void) {
        observers.withLock { $0.append(observer) }
    }

    /// Calls all observers with an event.
    package func callAsFunction(_ event: Event) {
        for observer in observers.withLock({ $0 }) { observer(event) }
    }
}

extension Hook where Event == Void {
    package func callAsFunction() { self(()) }
}
