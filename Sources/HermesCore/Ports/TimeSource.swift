// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Tells the time. The core never asks the system itself, so that tests control the time.
package protocol TimeSource: Sendable {
    /// The wall clock, for stamps that are stored and shown.
    func now() -> Timestamp
    /// The wall clock as it is set. For what must not outlive its time of expiry, such as tokens. While ``now()`` does
    /// not follow a clock that jumped ahead, this time is the later one.
    func latest() -> Timestamp
    /// A clock that never jumps, for intervals; its zero is arbitrary.
    func uptime() -> Duration
    /// The time by which reads decide which entries have expired: ``now()``, and whether it can be trusted for entries
    /// of an earlier process.
    func expiryTime() -> ExpiryTime
}

extension TimeSource {
    package func latest() -> Timestamp { now() }

    package func expiryTime() -> ExpiryTime { ExpiryTime(now: now()) }
}

/// The system's clocks.
package struct SystemTime: TimeSource {
    private let start = ContinuousClock.now

    package init() {}

    package func now() -> Timestamp { Timestamp(rawValue: Int64(Date().timeIntervalSince1970 * 1000)) }

    package func uptime() -> Duration { ContinuousClock.now - start }
}
