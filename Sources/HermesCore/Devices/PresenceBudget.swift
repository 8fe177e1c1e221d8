// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of notices of presence that the server gives; one for all accounts.
///
/// Each change goes to everybody who watches the account, and anybody may watch it. So an account pays for a part of
/// its notices only, and thousands of connections that watch the same accounts would be told of each change. Therefore
/// the notices that are given at once have a rate, of which one source uses an eighth at most. Whoever is not told at
/// once is told within some seconds, of the last state only: of further notices a second, half go to those with the
/// fewest watchers, and half to those that have waited longest.
///
/// State: a ``Locked``; taken once for each change of a watched account.
final class PresenceBudget: Sendable {
    /// The notices that are given at once, a second; some 5 µs each with their output.
    static let rate = 50_000
    static let burst = 100_000
    /// The parts of them that one source may use.
    static let sourceParts = 8
    /// The watchers of an account above which none is told at once: all of them would be told in one go, on the event
    /// loop of whoever changed.
    static let maxAtOnce = 1_000
    /// The notices that are given later, a second, and at once.
    static let lateRate = 25_000
    static let lateBurst = lateRate / 20

    private struct State: Sendable {
        var total = TokenBucket(burst: PresenceBudget.burst, now: .zero)
        var sources = TokenBuckets<CommitSource>()
        var late = TokenBucket(burst: PresenceBudget.lateBurst, now: .zero)
    }

    private let state = Locked(State())
    private let uptime: @Sendable () -> Duration

    /// - Parameter uptime: a clock that never goes back.
    init(uptime: @escaping @Sendable () -> Duration) { self.uptime = uptime }

    /// Whether all watchers of an account are told at once; they are charged.
    ///
    /// - Parameter source: whoever caused the change; the server's own have no share.
    func tellsAtOnce(_ watchers: Int, by source: CommitSource) -> Bool {
        guard watchers > 0 else { return true }
        guard watchers <= Self.maxAtOnce else { return false }
        let now = uptime()
        let share = TokenRate(perSecond: Self.rate / Self.sourceParts, burst: Self.burst / Self.sourceParts)
        return state.withLock { state in
            guard state.total.hasToken(rate: Self.rate, burst: Self.burst, now: now) else { return false }
            if source != .server {
                let isAllowed = state.sources.change(source, now: now, rate: { _ in share }) { bucket in
                    guard bucket.holds(1, ofBurst: 1) else { return false }
                    bucket.take(watchers)
                    return true
                }
                guard isAllowed else { return false }
            }
            state.total.take(watchers)
            return true
        }
    }

    /// Which of the accounts that wait are told of now; their watchers are charged.
    ///
    /// - Parameter waiting: the number of watchers of each, and the place at which it began to wait.
    func tellsLate(_ waiting: [(watchers: Int, since: UInt64)]) -> [Bool] {
        let now = uptime()
        let byWatchers = waiting.indices.sorted { waiting[$0].watchers < waiting[$1].watchers }
        let byTime = waiting.indices.sorted { waiting[$0].since < waiting[$1].since }
        var isTold = Array(repeating: false, count: waiting.count)
        state.withLock { state in
            guard state.late.hasToken(rate: Self.lateRate, burst: Self.lateBurst, now: now) else { return }
            for (indices, part) in [(byWatchers, 0.5), (byTime, 0)] {
                for index in indices where !isTold[index] {
                    guard state.late.holds(part, ofBurst: Self.lateBurst) else { break }
                    state.late.take(waiting[index].watchers)
                    isTold[index] = true
                }
            }
        }
        return isTold
    }
}
