// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Tells the time. The core never asks the system itself, so that tests decide what time it is.
package protocol TimeSource: Sendable {
    /// The wall clock, for stamps that are stored and shown.
    func now() -> Timestamp
    /// A clock that never jumps, for intervals; its zero is arbitrary.
    func uptime() -> Duration
}
