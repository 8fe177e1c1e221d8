// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits how often lines of one kind are logged: the first line is logged, and then at most one line in each interval.
/// Thread-safe.
///
/// State: one `Mutex`.
package final class LineThrottle: Sendable {
    private struct Allowance {
        var next: Duration
        var skipped = 0
    }

    /// The maximum number of kinds that are counted separately. All further kinds count as one kind.
    private static let maxKinds = 64

    private let interval: Duration
    private let allowances = Mutex<[String: Allowance]>([:])

    package init(interval: Duration = .seconds(60)) { self.interval = interval }

    /// Returns the number of lines of this kind that were left out since the last line of this kind was logged; nil if
    /// this line must be left out, too.
    ///
    /// - Parameter now: the time of a clock that never goes back.
    package func skipped(_ kind: String, now: Duration) -> Int? {
        allowances.withLock { allowances in
            let isTold = allowances[kind] != nil || allowances.count < Self.maxKinds
            let kind = isTold ? kind : ""
            let allowance = allowances[kind] ?? Allowance(next: now)
            guard now >= allowance.next else {
                allowances[kind]?.skipped += 1
                return nil
            }
            allowances[kind] = Allowance(next: now + interval)
            return allowance.skipped
        }
    }
}
