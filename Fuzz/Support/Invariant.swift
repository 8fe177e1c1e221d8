// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stops the process if an invariant does not hold.
package func invariant(_ holds: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String) rethrows {
    if try !holds() { broken(message()) }
}

/// Stops the process because an invariant does not hold.
package func broken(_ message: String) -> Never {
    // Not a precondition, which prints no message in release builds. libFuzzer notices that the process stops.
    fatalError(message)
}
