// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Which room a connection is in, and what follows from what it does. Pure; the owner is the connection's handler.
///
/// A connection is a member from the moment it is accepted until it leaves, is removed or closes. The one that leaves is
/// removed before its leave is published, so that it does not get its own.
package struct RoomMembership: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        case outside
        case member(RoomName)
        /// Left or removed: there is no way back on this connection.
        case gone
    }

    package enum Event: Sendable, Hashable {
        /// The connection was accepted by a listener of this room.
        case accepted(RoomName)
        /// It chose another room.
        case entered(RoomName)
        /// It said something to the room.
        case spoke
        /// It said that it leaves.
        case left
        /// It was silent for too long, was kicked, or the connection closed.
        case removed
    }

    package enum Action: Sendable, Hashable {
        case none
        case subscribe(RoomName)
        /// Unsubscribe from the first, then subscribe to the second.
        case move(from: RoomName, to: RoomName)
        case publish(RoomName)
        /// Unsubscribe, then publish what it said, then close the connection.
        case unsubscribeAndPublish(RoomName)
        /// Unsubscribe without a word.
        case unsubscribe(RoomName)
        /// The peer broke the rules: close the connection.
        case refuse
    }

    package private(set) var state: State = .outside

    package init() {}

    /// What to do about an event.
    package mutating func handle(_ event: Event) -> Action {
        switch (state, event) {
        case (.outside, .accepted(let room)), (.outside, .entered(let room)):
            state = .member(room)
            return .subscribe(room)
        case (.outside, .spoke), (.outside, .left):
            return .refuse
        case (.outside, .removed):
            state = .gone
            return .none
        case (.member, .accepted):
            return .none
        case (.member(let room), .entered(let other)):
            guard room != other else { return .none }
            state = .member(other)
            return .move(from: room, to: other)
        case (.member(let room), .spoke):
            return .publish(room)
        case (.member(let room), .left):
            state = .gone
            return .unsubscribeAndPublish(room)
        case (.member(let room), .removed):
            state = .gone
            return .unsubscribe(room)
        case (.gone, .accepted), (.gone, .entered), (.gone, .spoke), (.gone, .left), (.gone, .removed):
            // Frames behind a leave in the same read: the connection is closing already.
            return .none
        }
    }
}
