// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stops the process if something that must hold does not.
package func invariant(_ holds: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String) rethrows {
    if try !holds() { broken(message()) }
}

/// Stops the process because something that must hold does not.
package func broken(_ message: String) -> Never {
    // Not a precondition: those do not print their message in release builds. Stopping is how libFuzzer learns of it.
    fatalError(message)
}
