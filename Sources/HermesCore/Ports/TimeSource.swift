// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Provides the time. The core never reads the system's clocks itself, so that tests control the time.
package protocol TimeSource: Sendable {
    /// Returns the time of the wall clock, for time stamps that are stored and shown.
    func now() -> Timestamp
    /// Returns the time that the wall clock shows, even after a jump. Use this time for things that must not outlive
    /// their expiry, such as tokens, and for time stamps that other servers compare with their own clocks. While
    /// ``now()`` does not follow a clock that jumped ahead, this time is later than ``now()``.
    func latest() -> Timestamp
    /// Returns the time of a clock that never jumps, for the measurement of intervals. The zero of this clock is
    /// arbitrary.
    func uptime() -> Duration
    /// Returns the time by which reads decide which entries have expired. It contains ``now()``, and whether ``now()``
    /// can be trusted for entries that an earlier process stored.
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
