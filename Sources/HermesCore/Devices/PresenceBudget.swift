// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits the notices of presence that the server sends, and remembers the users whose watchers get such notices later.
/// There is one budget for all accounts.
///
/// Each change of a user's presence goes to everybody who watches the user, and anybody may watch any user. So one
/// change can cause notices to thousands of connections, but the user is charged for only a part of these notices.
/// Therefore, the notices that are sent at once have a rate limit. One source can use at most an eighth of this rate,
/// and the last quarter of the burst is reserved for sources that have used little of their share. Watchers that get no
/// notice at once get a notice later. It contains only the user's last state. Half of the later notices are for the
/// users with the fewest watchers. For the other half, the sources of the changes take turns.
///
/// State: a ``Locked`` struct. Its lock is acquired once for each change of a watched user. No other code is called
/// while the lock is held.
final class PresenceBudget: Sendable {
    /// The number of notices per second that are sent without delay. Each notice takes about 5 µs, including its
    /// output.
    static let rate = 50_000
    static let burst = 100_000
    /// One source can use at most ``rate`` and ``burst`` divided by this number.
    static let sourceParts = 8
    /// The largest number of watchers that are notified at once: by the event loop on which the change happened, or in
    /// one part of the later notices.
    static let maxAtOnce = 1_000
    /// The rate of later notices in each ``Order``, per second.
    static let lateRate = 12_500
    /// The largest burst of later notices in each ``Order``.
    static let lateBurst = lateRate / 5

    /// The two orders of the users that wait.
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

    /// Whether all watchers of a user are notified at once. If so, the notices are charged to the source and to the
    /// total.
    ///
    /// - Parameter source: the source that caused the change. The server, and clients whose address is not known, have
    ///   no share of their own: only the total limits them.
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

    /// Adds a user of whom watchers or observers are notified later.
    func tellLater(of user: UserID, watchers: Int, isReported: Bool, by source: CommitSource) {
        let now = time.uptime()
        state.withLock { state in
            if watchers > 0 { state.line.append(user, watchers: watchers, by: source, now: now) }
            if isReported { state.line.appendReport(user, now: now) }
        }
    }

    /// Removes and returns the next user of whom observers are notified now.
    ///
    /// - Parameter isEarly: whether the user is returned even if its second of waiting is not over.
    func nextReport(isEarly: Bool = false) -> UserID? {
        let now = isEarly ? nil : time.uptime()
        return state.withLock { $0.line.nextReport(now: now) }
    }

    /// Returns the next user, in this order, whose watchers may be notified now, and removes the user from both orders.
    /// If the watchers are notified, ``charge(_:to:)`` must be called.
    ///
    /// Users with more than about ``maxAtOnce`` watchers are returned only in the order ``Order/turns``.
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

    /// Charges an order for watchers that are notified.
    func charge(_ watchers: Int, to order: Order) { state.withLock { $0[order].take(watchers) } }

    /// Whether any user waits.
    var isWaiting: Bool { state.withLock { !$0.line.isEmpty } }
}
