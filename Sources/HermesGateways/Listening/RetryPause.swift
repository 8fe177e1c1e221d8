// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The pauses of one connection before it reads again from a store that has failed (``Backoff``).
struct RetryPause {
    private static let backoff = Backoff(base: .seconds(1), limit: .seconds(30))

    private var failures = 0

    /// Returns the pause after one more failure. If the server is only busy, the pause does not grow.
    mutating func next(after error: HermesError) -> TimeAmount {
        let delay = Self.backoff.delay(failures: failures + 1)
        if error.code != .overloaded { failures += 1 }
        return TimeAmount(delay)
    }

    /// Starts again with the shortest pause.
    mutating func succeeded() { failures = 0 }
}
