// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rooms that one connection is in, for protocols whose clients may be in several rooms.
///
/// A new member is announced to the other members only if the rules let the new member send to the room, because the
/// announced name is also a text. A new member is not announced if too many members enter at once. When a member
/// leaves, this is announced only if the member's entry was announced. Does no I/O; the gateway checks the rules
/// (``ClientAccess``) and publishes the returned events.
package struct RoomMemberships<Held> {
    /// The maximum number of rooms of one connection.
    package static var limit: Int { 100 }

    /// The connection's membership in one room.
    package struct Membership {
        package let member: RoomMember
        /// The object that the gateway keeps for the room: its subscription.
        package let held: Held
        let isAnnounced: Bool

        /// The event that tells the other members that this member has left; nil if this member's entry was not
        /// announced.
        package var farewell: RoomEvent.Content? { isAnnounced ? .left(member) : nil }
    }

    private var memberships: [RoomName: Membership] = [:]

    package init() {}

    package var isEmpty: Bool { memberships.isEmpty }

    /// The names of the rooms, in no particular order.
    package var names: [RoomName] { Array(memberships.keys) }

    /// The connection's membership in a room; nil if it is not in the room.
    package subscript(room: RoomName) -> Membership? { memberships[room] }

    /// Enters a room.
    ///
    /// - Parameters:
    ///   - mayHear: whether the rules let the client into the room.
    ///   - isTold: whether the client's entry is announced to all members; evaluated only if the client enters.
    ///   - held: creates the object that is kept with the membership; called only when it is certain that the client
    ///     enters.
    /// - Returns: the event for all members of the room, including the client; nil if the entry is not announced.
    /// - Throws: `.tooLarge`, `.forbidden`. In both cases, nothing has changed.
    package mutating func enter(
        _ room: RoomName,
        as member: RoomMember,
        mayHear: Bool,
        isTold: @autoclosure () -> Bool,
        holding held: () -> Held
    ) throws(HermesError) -> RoomEvent.Content? {
        try member.check()
        guard mayHear else { throw BoundTopicRules.refusal(.subscribe, room) }
        guard memberships[room] == nil else { throw HermesError(.forbidden, "already in this room") }
        guard memberships.count < Self.limit else {
            throw HermesError(.forbidden, "a connection can be in at most \(Self.limit) rooms")
        }
        let membership = Membership(member: member, held: held(), isAnnounced: isTold())
        memberships[room] = membership
        return membership.isAnnounced ? .joined(member) : nil
    }

    /// Returns the member that the connection represents when it sends to a room.
    ///
    /// - Throws: `.forbidden` if the connection is not in the room, or if the rules do not let it send to the room.
    package func speaker(in room: RoomName, mayTalk: Bool) throws(HermesError) -> RoomMember {
        guard let membership = memberships[room] else { throw Self.notInside }
        guard mayTalk else { throw BoundTopicRules.refusal(.publish, room) }
        return membership.member
    }

    /// Leaves a room.
    ///
    /// - Returns: the membership that ended. The caller releases the held object and informs the other members.
    /// - Throws: `.forbidden` if the connection is not in the room.
    package mutating func leave(_ room: RoomName) throws(HermesError) -> Membership {
        guard let membership = memberships.removeValue(forKey: room) else { throw Self.notInside }
        return membership
    }

    /// The error for a room that the connection is not in.
    package static var notInside: HermesError { HermesError(.forbidden, "enter the room first") }

    /// Leaves all rooms, and returns the memberships that ended.
    package mutating func leaveAll() -> [(room: RoomName, membership: Membership)] {
        defer { memberships = [:] }
        return memberships.map { (room: $0.key, membership: $0.value) }
    }
}
