// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The budget for announcing joins and leaves to rooms. All loops and protocols share one budget.
///
/// Each join, and each leave, is sent to everybody in the room. So the work in one room grows with the square of the
/// number of joins. A client pays for its own join, but many addresses may join at once. So each loop sends only a
/// limited number of frames per second for joins and leaves, regardless of the loops on which the joins and leaves
/// arrive. If any loop has no frames left for a join, the join is not announced to the room. In the native protocol,
/// the leave is then not announced either. In MQTT and LiveRoom, a leave for which no announced join is recorded is
/// charged like a join, and may be announced. This budget never holds back texts.
///
/// One source uses at most an eighth of the budget, and one room at most half of it, so that no source or room hides
/// the arrivals of others. The last quarter is reserved for sources that have used nothing for some seconds.
///
/// State: a ``Locked``, taken once for each join. No other code is called while it is held.
final class ArrivalBudget: Sendable {
    /// The frames per second on one loop. They take about a tenth of a processor core.
    static let rate = 100_000
    static let burst = 400_000
    /// The divisors of the budget: one source may use an eighth of it, and one room a half.
    static let (sourceParts, roomParts) = (8, 2)

    private struct State: Sendable {
        var loops: [TokenBucket]
        var sources = TokenBuckets<CommitSource>()
        var rooms = TokenBuckets<TopicName>()
    }

    private let rate: Int
    private let burst: Int
    private let state: Locked<State>

    init(loops: Int, rate: Int = ArrivalBudget.rate, burst: Int = ArrivalBudget.burst) {
        self.rate = rate
        self.burst = burst
        state = Locked(State(loops: Array(repeating: TokenBucket(burst: burst, now: .zero), count: loops)))
    }

    /// Whether a join is announced to the room. The join is charged together with its leave.
    ///
    /// - Parameters:
    ///   - viewers: the number of viewers that get the join, for each loop.
    ///   - now: the present time of a monotonic clock.
    func tells(_ viewers: [Int], in room: TopicName, by source: CommitSource, now: Duration) -> Bool {
        let most = viewers.max() ?? 0
        guard most > 0 else { return true }
        let all = TokenRate(perSecond: rate, burst: burst)
        let (ofSource, ofRoom) = (all.part(Self.sourceParts), all.part(Self.roomParts))
        return state.withLock { state in
            let (isAllowed, isNew) = state.sources.change(source, now: now, rate: { _ in ofSource }) {
                ($0.hasToken, $0.holds(0.99, ofBurst: ofSource.burst))
            }
            guard isAllowed, state.rooms.change(room, now: now, rate: { _ in ofRoom }, { $0.hasToken }) else {
                return false
            }
            for (loop, count) in viewers.enumerated() where count > 0 {
                guard state.loops[loop].hasToken(rate: rate, burst: burst, now: now),
                    isNew || state.loops[loop].holds(0.25, ofBurst: burst)
                else { return false }
            }
            for (loop, count) in viewers.enumerated() where count > 0 { state.loops[loop].take(2 * count) }
            state.sources.change(source, now: now, rate: { _ in ofSource }) { $0.take(2 * most) }
            state.rooms.change(room, now: now, rate: { _ in ofRoom }) { $0.take(2 * most) }
            return true
        }
    }
}
