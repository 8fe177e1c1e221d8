// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Checks the results of recent commits before it tries a write of its own: a disk may have room for that write, but
/// not for the writes of clients.
///
/// A committer's failure counts until the same committer succeeds with a commit of at least the same size, but at most
/// for ``CommitFailure/memory``. Without this limit, a server whose clients have left would never be ready again.
struct CommitWatch: Sendable {
    private let failures: @Sendable () -> [CommitFailure]
    private let uptime: @Sendable () -> Duration
    private let tryWrite: Readiness.Probe

    /// - Parameters:
    ///   - failures: returns the last failure of each committer, unless a large enough commit has succeeded since then.
    ///   - uptime: returns the present time of the clock that is used for the times of the failures.
    ///   - tryWrite: tries a write of its own.
    init(
        _ failures: @escaping @Sendable () -> [CommitFailure],
        uptime: @escaping @Sendable () -> Duration,
        tryWrite: @escaping Readiness.Probe
    ) {
        self.failures = failures
        self.uptime = uptime
        self.tryWrite = tryWrite
    }

    /// Reports the reason why the store cannot write; nil if it can write.
    @Sendable func probe(_ done: @escaping @Sendable (String?) -> Void) {
        // The failures are read before the clock, so that none of them is later than `now`.
        let failures = failures()
        let now = uptime()
        let recent = failures.first { $0.isRecent(now: now) }
        if let recent { done("commits fail: \(recent.reason)") } else { tryWrite(done) }
    }
}
