// Hermes
// SPDX-License-Identifier: Apache-2.0

/// For each event loop, the number of subscriptions that get the events of a room. A publication on one loop causes
/// work on all loops, so the decision whether to publish needs the numbers of all loops. Thread-safe.
///
/// State: a ``Locked``. It is locked whenever a subscription to a room, or to a filter that matches rooms, begins or
/// ends. Nothing is called while it is locked.
final class RoomAudiences: Sendable {
    private struct State: Sendable {
        /// For each room name, the number of subscriptions on each loop. Rooms without subscriptions are not listed.
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

    /// Counts added subscriptions to a topic name or filter. A negative count means that subscriptions were removed.
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

    /// For each loop, returns an upper bound for the number of clients that get the publications to a room. A client
    /// with several matching subscriptions counts several times.
    func counts(of room: TopicName) -> [Int] {
        let name = room.room?.rawValue ?? ""
        return state.withLock { state in
            guard let own = state.rooms[name] else { return state.everywhere.map(Int.init) }
            return zip(own, state.everywhere).map { Int($0) + Int($1) }
        }
    }
}
