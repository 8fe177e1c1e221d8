// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An event loop for the core, which does not know NIO; the assembly makes it from a real loop.
package struct LoopHandle: Sendable {
    /// Runs work on the loop after its present work, in the order of the calls.
    package let execute: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Whether the caller runs on this loop.
    package let isCurrent: @Sendable () -> Bool
    /// Whether work that can wait may go on in this turn of the loop. Called on the loop.
    package let hasTime: @Sendable () -> Bool
    /// Runs work on the loop in a later turn, after what already waits. Called on the loop.
    package let inTurn: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameters:
    ///   - hasTime: by default, there is always time.
    ///   - inTurn: nil: `execute` is used.
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

/// A value that belongs to one event loop and is touched there only.
///
/// The only place where the topic plane leaves the compiler's checks: the value is not Sendable, this box is. ``value``
/// stops the process, in release builds too, if any thread but the loop's asks for it.
package final class LoopConfined<Value>: @unchecked Sendable {  // Safe because `value` checks the loop on each access.
    package let loop: LoopHandle
    private let confined: Value

    package init(_ value: Value, loop: LoopHandle) {
        confined = value
        self.loop = loop
    }

    /// The value; asking for it on another thread is a programming error.
    package var value: Value {
        precondition(loop.isCurrent(), "touched off its event loop")
        return confined
    }
}
