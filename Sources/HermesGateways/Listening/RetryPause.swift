// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The pauses of one connection before it reads again from a store that has failed. They grow, and they are random, so
/// that thousands of connections do not read at the same moment.
struct RetryPause {
    private static let first = 1_000
    private static let longest = 30_000

    private var failures = 0

    /// Returns the pause after one more failure: from half of a limit to the limit. The limit is one second after the
    /// first failure, and twice as long after each further failure, up to 30 seconds. If the server is only busy, the
    /// pause does not grow.
    mutating func next(after error: HermesError) -> TimeAmount {
        let limit = min(Self.first << min(failures, 5), Self.longest)
        if error.code != .overloaded { failures += 1 }
        return .milliseconds(Int64.random(in: Int64(limit / 2)...Int64(limit)))
    }

    /// Starts again with the shortest pause.
    mutating func succeeded() { failures = 0 }
}
