// Hermes
// SPDX-License-Identifier: Apache-2.0

/// For each event loop, the number of subscriptions that get the events of a room. A publication on one loop is work
/// for all loops, so the decision whether to publish needs the numbers of all loops. Thread-safe.
///
/// State: a ``Locked``; taken whenever a subscription to a room, or to a filter that matches rooms, begins or ends.
/// Nothing is called under it.
final class RoomAudiences: Sendable {
    private struct State: Sendable {
        /// By the name of the room: for each loop, the number of subscriptions. Rooms without subscriptions are not
        /// listed.
        var rooms: [String: [Int32]] = [:]
        /// For each loop, the number of subscriptions to filters that match every room.
        var everywhere: [Int32]
    }

    private let state: Locked<State>
    private let loops: Int

    init(loops: Int) {
        self.loops = loops
        state = Locked(State(everywhere: Array(repeating: 0, count: loops)))
    }

    /// Counts subscriptions to a topic name or filter that were added or, with a negative count, removed.
    func change(_ filter: String, by count: Int32, on loop: Int) {
        switch MatchedRooms(of: filter[...]) {
        case nil: break
        case .all: state.withLock { $0.everywhere[loop] += count }
        case .one(let name):
            let room = String(name)
            state.withLock { state in
                var counts = state.rooms[room] ?? Array(repeating: 0, count: loops)
                counts[loop] += count
                state.rooms[room] = counts.allSatisfy { $0 == 0 } ? nil : counts
            }
        }
    }

    /// For each loop, returns an upper bound of the number of clients that get what is published to a room. A client
    /// with several matching subscriptions counts several times.
    func counts(of room: TopicName) -> [Int] {
        let name = room.room?.rawValue ?? ""
        return state.withLock { state in
            guard let own = state.rooms[name] else { return state.everywhere.map(Int.init) }
            return zip(own, state.everywhere).map { Int($0) + Int($1) }
        }
    }
}
