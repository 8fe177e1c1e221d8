// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A handle to an event loop. The core uses such handles, because it does not use the event loops of SwiftNIO directly.
/// The code that assembles the server makes each handle from a real event loop.
package struct LoopHandle: Sendable {
    /// Runs work on the loop after the loop's present work, in the order of the calls.
    package let execute: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Whether the caller runs on this loop.
    package let isCurrent: @Sendable () -> Bool
    /// Whether there is time in this turn (iteration) of the loop for work that can wait. Called on the loop.
    package let hasTime: @Sendable () -> Bool
    /// Runs work on the loop in a later turn, after the work that already waits. Called on the loop.
    package let inTurn: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameters:
    ///   - hasTime: by default, there is always time.
    ///   - inTurn: if this is nil, `execute` is used.
    package init(
        execute: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        isCurrent: @escaping @Sendable () -> Bool,
        hasTime: @escaping @Sendable () -> Bool = { true },
        inTurn: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
    ) {
        self.execute = execute
        self.isCurrent = isCurrent
        self.hasTime = hasTime
        self.inTurn = inTurn ?? execute
    }
}

/// A value that belongs to one event loop and is touched only there.
///
/// This is the only place where the topic plane bypasses the compiler's concurrency checks: the value is not Sendable,
/// but this box is. A read of ``value`` on any thread except the loop's stops the process, even in release builds.
package final class LoopConfined<Value>: @unchecked Sendable {  // Safe because `value` checks the loop on each access.
    package let loop: LoopHandle
    private let confined: Value

    package init(_ value: Value, loop: LoopHandle) {
        confined = value
        self.loop = loop
    }

    /// The value. Reading it on another thread is a programming error.
    package var value: Value {
        precondition(loop.isCurrent(), "touched off its event loop")
        return confined
    }
}
