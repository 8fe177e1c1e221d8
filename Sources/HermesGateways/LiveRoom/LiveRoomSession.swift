// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// One viewer's session: which room it is in, whether it lives, whose account it is bound to.
///
/// Pure: `LiveRoomSession+StateMachine.swift` takes events and returns what is to be done. Owner: the connection's
/// event loop.
package struct LiveRoomSession: Sendable {
    /// Where a session stands.
    package enum State: Hashable, Sendable {
        /// Connected, but in no room: the listener wants an account and none is bound yet.
        case outside
        /// In the room; what it sends is forwarded.
        case inside
        /// An access token is being checked; nothing is read meanwhile. `wasInside`: the session keeps its place in
        /// the room.
        case entering(RoomName, wasInside: Bool)
        /// Removed; nothing that comes counts any more.
        case ended
    }

    /// What is to be done after an event.
    package enum Action: Hashable, Sendable {
        /// Nothing; for the counters, why.
        case ignore(Ignored)
        /// The viewer gave a sign of life.
        case live
        /// Begin to receive what is said in the room.
        case enter(RoomName)
        /// Forward the frame that was just received, byte for byte, to everyone in the room, this viewer included.
        case publish
        /// Read no more and find out whom the token belongs to; then report `entryAccepted` or `entryRefused` and read
        /// on.
        case checkToken(LiveRoomEntry)
        /// Go to another room: announce the leave in the one, then begin to receive the other.
        case move(LiveRoomDeparture?, to: RoomName)
        /// Stop receiving, tell the others, close.
        case leave(LiveRoomDeparture?)
        /// The same, but tell this viewer why before closing.
        case kick(LiveRoomKick, LiveRoomDeparture?)
    }

    /// Why nothing was done.
    package enum Ignored: Hashable, Sendable {
        /// The session has ended, or never began.
        case ended
        /// The viewer is in no room yet.
        case outside
        /// An access token is being checked.
        case entering
        /// A known type whose body does not parse.
        case badBody
        /// A type that only the server sends (4, 5).
        case serverType
        /// A type without a meaning (6, 7, 10 to 15).
        case unknownType
        /// The application's own type, which this listener does not forward.
        case applicationType
        /// The rules for topics do not let this viewer say anything in the room.
        case forbidden
    }

    package let rules: LiveRoomRules
    package internal(set) var state: State
    /// The room that the session is in, or will be once it has an account.
    package internal(set) var room: RoomName
    /// Whom the session is bound to; nil while it is anonymous.
    package internal(set) var principal: Principal?
    /// The body of the session's join, for the leave of a viewer that is lost; nil if it did not join.
    var joinBody: ByteBuffer?

    /// Creates the session of a connection that was just accepted; `accepted()` is the first event.
    package init(rules: LiveRoomRules) {
        self.rules = rules
        self.state = .outside
        self.room = rules.room
    }
}

/// What an enter frame asks for.
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

/// The leave of a room: what the others are sent, as the viewer's own frame of type 1.
package struct LiveRoomDeparture: Hashable, Sendable {
    package let room: RoomName
    /// A UserInfo; nil if the viewer never joined, so that the others have nobody to take off their list.
    package let announcement: ByteBuffer?

    package init(room: RoomName, announcement: ByteBuffer?) {
        self.room = room
        self.announcement = announcement
    }

    /// The same, silent where the viewer may not say anything.
    func said(if isAllowed: Bool) -> LiveRoomDeparture {
        isAllowed ? self : LiveRoomDeparture(room: room, announcement: nil)
    }
}

/// Why the server removes a viewer, as it is told to it (type 5).
package struct LiveRoomKick: Hashable, Sendable {
    package let code: HermesError.Code
    package let reason: String

    package init(_ code: HermesError.Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}
