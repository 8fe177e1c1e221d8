// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesGateways
import Synchronization

/// The number of viewers of a room, for viewers without an account. Other viewers get the number when they enter.
///
/// The rules for watching a room apply: anonymous clients must be allowed over HTTP, and the topic rules must let them
/// read the room's topic. A count is reused for everybody for two seconds, and the number of new counts per second is
/// limited. So strangers cause only a bounded number of questions to the event loops, whatever rooms they name.
///
/// State: one `Mutex`.
final class RoomAudience: Sendable {
    enum Answer: Sendable, Hashable {
        case viewers(Int)
        /// Watching this room requires an account.
        case forbidden
        /// Too many counts are requested.
        case busy
    }

    private struct State {
        var counts: [RoomName: (at: Duration, viewers: Int)] = [:]
        var bucket: TokenBucket
    }

    /// The time for which a count is reused.
    static let age = Duration.seconds(2)
    /// The number of new counts per second, and the largest number at once.
    static let (rate, burst) = (500, 1_000)
    /// The largest number of kept counts.
    static let maxRooms = 4_096

    private let isAnonymousAllowed: Bool
    private let access: TopicAccess
    private let count: @Sendable (RoomName) async -> Int
    private let uptime: @Sendable () -> Duration
    private let state: Mutex<State>

    /// - Parameters:
    ///   - isAnonymousAllowed: whether clients need no account over HTTP.
    ///   - uptime: the time of a clock that never goes back.
    ///   - count: counts a room's connections on all event loops.
    init(
        isAnonymousAllowed: Bool,
        access: TopicAccess,
        uptime: @escaping @Sendable () -> Duration,
        count: @escaping @Sendable (RoomName) async -> Int
    ) {
        self.isAnonymousAllowed = isAnonymousAllowed
        self.access = access
        self.uptime = uptime
        self.count = count
        state = Mutex(State(bucket: TokenBucket(burst: Self.burst, now: uptime())))
    }

    func viewers(of room: RoomName) async -> Answer {
        guard isAnonymousAllowed else { return .forbidden }
        let somebody = ClientIdentity(clientID: "")
        guard access.current.allows(.subscribe, room.topic.rawValue, for: somebody) else { return .forbidden }
        if let known = known(room) { return known }
        let viewers = await count(room)
        state.withLock { state in
            // If there are too many rooms, all counts are dropped.
            if state.counts.count >= Self.maxRooms { state.counts.removeAll(keepingCapacity: true) }
            state.counts[room] = (uptime(), viewers)
        }
        return .viewers(viewers)
    }

    /// Returns the answer if the room need not be counted; nil if the caller must count it.
    private func known(_ room: RoomName) -> Answer? {
        let now = uptime()
        return state.withLock { state in
            if let last = state.counts[room], now - last.at < Self.age { return .viewers(last.viewers) }
            guard state.bucket.hasToken(rate: Self.rate, burst: Self.burst, now: now) else { return .busy }
            state.bucket.take()
            return nil
        }
    }
}
#endif
