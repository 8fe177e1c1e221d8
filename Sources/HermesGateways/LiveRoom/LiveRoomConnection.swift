// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// The state of one viewer's connection: its room, its liveness, and its account.
///
/// Pure: `LiveRoomConnection+StateMachine.swift` takes events and returns actions. Owner: the connection's event loop.
package struct LiveRoomConnection: Sendable {
    /// The phase of a connection.
    package enum State: Hashable, Sendable {
        /// Connected, but in no room: the listener requires an account and there is none yet.
        case outside
        /// In the room; its frames are forwarded.
        case inside
        /// An access token is being checked; nothing is read meanwhile. `wasInside`: the viewer keeps its place in the
        /// room.
        case entering(RoomName, wasInside: Bool)
        /// Removed; input is ignored.
        case ended
    }

    /// The action for an event.
    package enum Action: Hashable, Sendable {
        /// Nothing; with the reason, for the counters.
        case ignore(Ignored)
        /// The viewer gave a sign of life.
        case live
        /// Subscribe to the room.
        case enter(RoomName)
        /// Forward the received frame, byte for byte, to everyone in the room, this viewer included.
        case publish
        /// Pause reading and check the token; then report `entryAccepted` or `entryRefused` and read on.
        case checkToken(LiveRoomEntry)
        /// Change rooms: announce the leave in the old one, then subscribe to the new one.
        case move(LiveRoomDeparture?, to: RoomName)
        /// Unsubscribe, tell the others, close.
        case leave(LiveRoomDeparture?)
        /// The same, but tell this viewer the reason before closing, if it ever entered.
        case kick(RoomRemoval, LiveRoomDeparture?)
    }

    /// The reason why there is no action.
    package enum Ignored: Hashable, Sendable {
        /// The viewer was removed, or is not in service yet.
        case ended
        /// The viewer is in no room yet.
        case outside
        /// An access token is being checked.
        case entering
        /// A known type whose body does not parse.
        case badBody
        /// A type that only the server sends (4, 5), from a viewer that entered.
        case serverType
        /// An undefined type (6, 7, 10 to 15), from a viewer that entered.
        case unknownType
        /// The application's own type, which this listener does not forward.
        case applicationType
        /// The topic rules do not let this viewer talk in the room.
        case forbidden
        /// A join, while too many come at once.
        case crowded
    }

    package let rules: LiveRoomRules
    package internal(set) var state: State
    /// The viewer's room, or the one it enters once it has an account.
    package internal(set) var room: RoomName
    /// Whether the viewer ever said *enter*. Only then it knows the server's own types: others are not sent to it, and
    /// from it they are the application's.
    package internal(set) var hasEntered = false
    /// The viewer's account; nil while it is anonymous.
    package internal(set) var principal: Principal?
    /// The body of the viewer's join, for the leave of a lost viewer; nil if it did not join.
    var joinBody: ByteBuffer?
    /// The one before, until it is certain that the others get the last one.
    var formerJoinBody: ByteBuffer?

    /// Creates the state of a new connection; `accepted()` is the first event.
    package init(rules: LiveRoomRules) {
        self.rules = rules
        self.state = .outside
        self.room = rules.room
    }
}

/// The request of an enter frame.
package struct LiveRoomEntry: Hashable, Sendable {
    package let room: RoomName
    package let token: String
    package let device: DeviceID

    package init(room: RoomName, token: String, device: DeviceID) {
        self.room = room
        self.token = token
        self.device = device
    }
}

/// The leave that the others see, as the viewer's own frame of type 1.
package struct LiveRoomDeparture: Hashable, Sendable {
    package let room: RoomName
    /// A UserInfo; nil if the viewer never joined, so that the others have nothing to remove.
    package let announcement: ByteBuffer?
    /// Whether the others saw the join; the budget of arrivals then has paid for the leave as well.
    package let isOfJoin: Bool

    package init(room: RoomName, announcement: ByteBuffer?, isOfJoin: Bool = true) {
        self.room = room
        self.announcement = announcement
        self.isOfJoin = isOfJoin
    }

    /// The same, silent if the viewer may not talk.
    func said(if isAllowed: Bool) -> LiveRoomDeparture {
        isAllowed ? self : LiveRoomDeparture(room: room, announcement: nil)
    }
}
