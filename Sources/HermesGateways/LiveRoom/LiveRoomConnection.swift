// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// The state of one viewer's connection: its room, its liveness, and its account.
///
/// This type does no I/O. The functions in `LiveRoomConnection+StateMachine.swift` handle events and return actions.
/// Owner: the connection's event loop.
package struct LiveRoomConnection: Sendable {
    /// The phase of a connection.
    package enum State: Hashable, Sendable {
        /// Connected, but in no room: the listener or the topic rules require an account, and the viewer has no
        /// account yet.
        case outside
        /// In the room; the viewer's frames are forwarded.
        case inside
        /// An access token is being checked, and reading is paused. If `wasInside` is true, the viewer stays in its
        /// former room meanwhile.
        case entering(RoomName, wasInside: Bool)
        /// Removed; input is ignored.
        case ended
    }

    /// The action for an event.
    package enum Action: Hashable, Sendable {
        /// Do nothing, and count the reason.
        case ignore(Ignored)
        /// Record a sign of life from the viewer.
        case live
        /// Subscribe to the room.
        case enter(RoomName)
        /// Forward the received frame, byte for byte, to everyone in the room, including this viewer.
        case publish
        /// Pause reading and check the token, then call `entryAccepted` or `entryRefused` and resume reading.
        case checkToken(LiveRoomEntry)
        /// Change rooms: announce the departure in the old room, unless it is nil. Then subscribe to the new room.
        case move(LiveRoomDeparture?, to: RoomName)
        /// Unsubscribe, and announce the departure to the others, unless it is nil. Then close the connection.
        case leave(LiveRoomDeparture?)
        /// Unsubscribe, and announce the departure to the others, unless it is nil. If the viewer ever sent *enter*,
        /// send it the reason. Then close the connection.
        case kick(RoomRemoval, LiveRoomDeparture?)
    }

    /// The reason why there is no action.
    package enum Ignored: Hashable, Sendable {
        /// The viewer was removed, or its token is no longer being checked.
        case ended
        /// The viewer is in no room yet.
        case outside
        /// An access token is being checked.
        case entering
        /// A frame of a known type whose body cannot be parsed.
        case badBody
        /// A type that only the server sends (4, 5), from a viewer that sent *enter*.
        case serverType
        /// An undefined type (6, 7, 10 to 15), from a viewer that sent *enter*.
        case unknownType
        /// A type of the application, which this listener does not forward.
        case applicationType
        /// The topic rules do not let this viewer talk in the room.
        case forbidden
        /// A join, or a leave without a join, while too many viewers join at once.
        case crowded
    }

    package let rules: LiveRoomRules
    package internal(set) var state: State
    /// The viewer's room, or the room that the viewer enters as soon as it has an account.
    package internal(set) var room: RoomName
    /// Whether the viewer ever sent *enter*. Only viewers that sent *enter* know the server's own types. Other viewers
    /// get no frames of these types from the server. If they send frames of these types, the frames belong to the
    /// application.
    package internal(set) var hasEntered = false
    /// The viewer's account; nil while it is anonymous.
    package internal(set) var principal: Principal?
    /// The body of the leave that the server sends for a lost viewer, made from the viewer's join; nil if there is no
    /// join.
    var joinBody: ByteBuffer?
    /// The body of the second-newest join. It is needed if the newest join is not forwarded.
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

/// A viewer's departure from a room. The other viewers get the departure as a frame of type 1 from the viewer.
package struct LiveRoomDeparture: Hashable, Sendable {
    package let room: RoomName
    /// The body of the leave, a UserInfo; nil if the other viewers are not notified. An example is a viewer that
    /// never joined, so that the others have nothing to remove.
    package let announcement: ByteBuffer?
    /// Whether the other viewers got the viewer's join. If so, the leave has already been charged together with the
    /// join (``ArrivalBudget``).
    package let isOfJoin: Bool

    package init(room: RoomName, announcement: ByteBuffer?, isOfJoin: Bool = true) {
        self.room = room
        self.announcement = announcement
        self.isOfJoin = isOfJoin
    }

    /// Returns this departure, without the announcement if the viewer may not send to the room.
    func said(if isAllowed: Bool) -> LiveRoomDeparture {
        isAllowed ? self : LiveRoomDeparture(room: room, announcement: nil)
    }
}
