// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// Counts the members of rooms, for clients that enter. A count queries every event loop. So the number of counts per
/// second is limited, for all clients and all rooms together. Beyond the limit, a client gets the last known count of
/// its room.
///
/// State: one `Mutex`. No other code is called while it is held.
package final class RoomCounts: Sendable {
    private struct State {
        var last: [RoomName: Int] = [:]
        var bucket: TokenBucket
    }

    /// The number of counts per second, and the largest number of counts at once.
    package static let (rate, burst) = (1_000, 2_000)
    /// The largest number of counts that are kept.
    static let maxRooms = 4_096

    private let uptime: @Sendable () -> Duration
    private let count: @Sendable (RoomName) async -> Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - uptime: returns the present time of a monotonic clock.
    ///   - count: counts a room's connections on all event loops.
    package init(
        uptime: @escaping @Sendable () -> Duration,
        count: @escaping @Sendable (RoomName) async -> Int
    ) {
        self.uptime = uptime
        self.count = count
        state = Mutex(State(bucket: TokenBucket(burst: Self.burst, now: uptime())))
    }

    /// Returns the number of a room's members. Beyond the limit on counts, returns the last known number.
    ///
    /// - Parameter here: the number of members on the caller's own loop. The result is at least this number.
    package func members(of room: RoomName, here: Int) async -> Int {
        let now = uptime()
        let known = state.withLock { state -> Int? in
            guard state.bucket.hasToken(rate: Self.rate, burst: Self.burst, now: now) else {
                return max(here, state.last[room] ?? 0)
            }
            state.bucket.take()
            return nil
        }
        if let known { return known }
        let members = await count(room)
        state.withLock { state in
            // If there are too many rooms, all counts are dropped.
            if state.last.count >= Self.maxRooms { state.last.removeAll(keepingCapacity: true) }
            state.last[room] = members
        }
        return max(here, members)
    }
}
