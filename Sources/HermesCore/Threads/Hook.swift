// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Something that happens, and the functions that are called then, in the order in which they were added.
///
/// A `Mutex` around a function itself must not be used: each access wraps the function twice more, in code that
/// converts it to the form of a generic value and back. So each call is slower than the last, until its stack is used
/// up.
///
/// State: a `Mutex`; nothing is called under it.
package final class Hook<Event: Sendable>: Sendable {
    private let observers = Mutex<[@Sendable (Event) -> Void]>([])

    package init() {}

    /// Adds a function that is called on the thread on which it happens; it must not block.
    package func observe(_ observer: @escaping @Sendable (Event) -> Void) {
        observers.withLock { $0.append(observer) }
    }

    /// It happens now.
    package func callAsFunction(_ event: Event) {
        for observer in observers.withLock({ $0 }) { observer(event) }
    }
}

extension Hook where Event == Void {
    package func callAsFunction() { self(()) }
}
