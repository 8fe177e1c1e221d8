// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of notices of presence that the server gives, and the users whose watchers wait; one for all accounts.
///
/// Each change goes to everybody who watches the user, and anybody may watch it. So a user pays for a part of its
/// notices only, and thousands of connections that watch the same users would be told of each change. Therefore the
/// notices that are given at once have a rate, of which one source uses an eighth at most; the last quarter is for
/// sources that have used little of their share. Whoever is not told at once is told later, of the last state only: half
/// of the later notices go to the users with the fewest watchers, and half to the sources of the changes in turn.
///
/// State: a ``Locked``; taken once for each change of a watched user. Nothing is called under it.
final class PresenceBudget: Sendable {
    /// The notices that are given at once, a second; some 5 µs each with their output.
    static let rate = 50_000
    static let burst = 100_000
    /// The parts of them that one source may use.
    static let sourceParts = 8
    /// The most watchers that are told in one go, by the event loop of whoever changed or in one part of those that wait.
    static let maxAtOnce = 1_000
    /// The notices that are given later, a second and at most at a time, in each of the two orders.
    static let lateRate = 12_500
    static let lateBurst = lateRate / 5

    /// The two orders of users that wait.
    enum Order {
        case fewestWatchers
        case turns
    }

    private struct State: Sendable {
        var total = TokenBucket(burst: PresenceBudget.burst, now: .zero)
        var sources = TokenBuckets<CommitSource>()
        var line = PresenceLine()
        var fewestWatchers = TokenBucket(burst: PresenceBudget.lateBurst, now: .zero)
        var turns = TokenBucket(burst: PresenceBudget.lateBurst, now: .zero)

        subscript(order: Order) -> TokenBucket {
            get { order == .turns ? turns : fewestWatchers }
            set { if order == .turns { turns = newValue } else { fewestWatchers = newValue } }
        }

        mutating func mayTell(_ order: Order, now: Duration) -> Bool {
            self[order].hasToken(rate: PresenceBudget.lateRate, burst: PresenceBudget.lateBurst, now: now)
        }
    }

    private let state = Locked(State())
    private let time: any TimeSource

    init(time: any TimeSource) { self.time = time }

    /// Whether all watchers of a user are told at once; they are charged.
    ///
    /// - Parameter source: whoever caused the change. The server, and peers whose address is not known, have no share.
    func tellsAtOnce(_ watchers: Int, by source: CommitSource) -> Bool {
        guard watchers <= Self.maxAtOnce else { return false }
        let now = time.uptime()
        let share = TokenRate(perSecond: Self.rate, burst: Self.burst).part(Self.sourceParts)
        return state.withLock { state in
            guard state.total.hasToken(rate: Self.rate, burst: Self.burst, now: now) else { return false }
            if source != .server, source != .address("") {
                let isLow = !state.total.holds(0.25, ofBurst: Self.burst)
                let isAllowed = state.sources.change(source, now: now, rate: { _ in share }) { bucket in
                    let isNew = bucket.holds(0.99, ofBurst: share.burst)
                    guard bucket.hasToken, isNew || !isLow else { return false }
                    bucket.take(watchers)
                    return true
                }
                guard isAllowed else { return false }
            }
            state.total.take(watchers)
            return true
        }
    }

    /// Watchers, or observers, are told later.
    func tellLater(of user: UserID, watchers: Int, isReported: Bool, by source: CommitSource) {
        let now = time.uptime()
        state.withLock { state in
            if watchers > 0 { state.line.append(user, watchers: watchers, by: source, now: now) }
            if isReported { state.line.appendReport(user, now: now) }
        }
    }

    /// The next user of whom observers are told now.
    func nextReport() -> UserID? {
        let now = time.uptime()
        return state.withLock { $0.line.nextReport(now: now) }
    }

    /// The next user of an order whose watchers are told now; ``charge(_:to:)`` follows if they are.
    ///
    /// Users with more watchers than are told in one go come in turns only.
    func next(_ order: Order) -> UserID? {
        let now = time.uptime()
        return state.withLock { state in
            guard state.mayTell(order, now: now) else { return nil }
            state.line.wake(now: now)
            return switch order {
            case .fewestWatchers: state.line.nextOfFewest(atMost: Self.maxAtOnce)
            case .turns: state.line.nextInTurn()
            }
        }
    }

    /// Whether the rate of an order allows a notice.
    func mayTell(_ order: Order) -> Bool {
        let now = time.uptime()
        return state.withLock { $0.mayTell(order, now: now) }
    }

    /// Watchers are told.
    func charge(_ watchers: Int, to order: Order) { state.withLock { $0[order].take(watchers) } }

    /// Whether anybody waits.
    var isWaiting: Bool { state.withLock { !$0.line.isEmpty } }
}
