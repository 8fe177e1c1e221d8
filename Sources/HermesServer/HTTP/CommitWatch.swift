// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Checks the results of recent commits before it tries a write of its own: a disk may have room for that write, but
/// not for the writes of clients.
///
/// State: one `Mutex`.
final class CommitWatch: Sendable {
    /// The numbers of committed and failed batches since the start.
    struct Counts: Sendable {
        var good: UInt64 = 0
        var failed: UInt64 = 0
    }

    private let counts: @Sendable () -> Counts
    private let tryWrite: Readiness.Probe
    private let last = Mutex(Counts())

    /// - Parameters:
    ///   - counts: the results of commits so far.
    ///   - tryWrite: tries a write of its own.
    init(_ counts: @escaping @Sendable () -> Counts, tryWrite: @escaping Readiness.Probe) {
        self.counts = counts
        self.tryWrite = tryWrite
    }

    /// Reports what prevents the store from writing; nil if nothing does.
    @Sendable func probe(_ done: @escaping @Sendable (String?) -> Void) {
        let now = counts()
        let areFailing = last.withLock { last in
            defer { last = now }
            return now.failed > last.failed && now.good == last.good
        }
        areFailing ? done("all commits failed since the last check; see the log") : tryWrite(done)
    }
}
