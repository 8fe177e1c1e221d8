// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The time that a transaction works before it leaves the remaining work to the next transaction, so that no client
/// waits long for another client's data.
struct TimeSlice {
    /// The time of a transaction that can leave work to the next one. Writing its pages to the log takes some 0.1 ms
    /// more. A message waits for the running transaction and then for its own transaction. A reply to this message
    /// waits in the same way.
    static let duration = Duration.milliseconds(5)
    /// The time of such a transaction if each commit waits for the disk. Waiting for the disk takes about as long as
    /// the work, or longer.
    static let durationWithSync = Duration.milliseconds(20)
    /// The longest time of a transaction if only the clients that keep the transaction busy wait for it. More rows
    /// then share the cost of the transaction and of common pages.
    static let longest = Duration.milliseconds(20)

    private(set) var duration: Duration
    private let clock: any TimeSource
    private let start: Duration

    /// Starts now.
    init(_ clock: any TimeSource, _ duration: Duration) {
        self.clock = clock
        self.duration = duration
        start = clock.uptime()
    }

    /// The time since the start of the slice.
    var elapsed: Duration { clock.uptime() - start }

    var isSpent: Bool { elapsed >= duration }

    /// Extends the transaction to ``longest``.
    mutating func extend() { duration = max(duration, Self.longest) }

    /// Ends an extended transaction soon. The work that follows its operations gets at most half of a usual slice.
    mutating func end(_ slice: Duration) { duration = min(duration, elapsed + slice / 2) }
}
