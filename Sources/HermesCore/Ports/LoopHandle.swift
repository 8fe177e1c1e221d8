// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How the core reaches an event loop without knowing what one is; made by the assembly from a real loop.
package struct LoopHandle: Sendable {
    /// Runs work on the loop after what the loop is doing now, in the order of the calls.
    package let execute: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Whether the caller runs on this loop.
    package let isCurrent: @Sendable () -> Bool

    package init(
        execute: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        isCurrent: @escaping @Sendable () -> Bool
    ) {
        self.execute = execute
        self.isCurrent = isCurrent
    }
}

/// A value that belongs to one event loop and is touched there only.
///
/// The one place where the topic plane leaves the compiler's checking: the value is not Sendable, this box is, and
/// ``value`` refuses (in release builds too) to hand the value out on any thread but the loop's.
package final class LoopConfined<Value>: @unchecked Sendable {  // Safe because `value` checks the loop on each access.
    package let loop: LoopHandle
    private let confined: Value

    package init(_ value: Value, loop: LoopHandle) {
        confined = value
        self.loop = loop
    }

    /// The value; a programming error to ask for on another thread.
    package var value: Value {
        precondition(loop.isCurrent(), "touched off its event loop")
        return confined
    }
}
