// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rooms that one connection is in, for protocols whose clients may be in several.
///
/// The other members are told of a new member only if the rules let it talk (its name is a text, too), and only if not
/// too many come at once. They are told that a member has left only if they were told that it had come. Pure; the
/// gateway asks the rules (``ClientAccess``) and publishes the returned events.
package struct RoomMemberships<Held> {
    /// The most rooms of one connection.
    package static var limit: Int { 100 }

    /// The connection's place in one room.
    package struct Membership {
        package let member: RoomMember
        /// The gateway's object for the room: its subscription.
        package let held: Held
        let isAnnounced: Bool

        /// The event that tells the others that it has left; nil: none, because they do not know that it was there.
        package var farewell: RoomEvent.Content? { isAnnounced ? .left(member) : nil }
    }

    private var memberships: [RoomName: Membership] = [:]

    package init() {}

    package var isEmpty: Bool { memberships.isEmpty }

    /// The rooms, in no order.
    package var names: [RoomName] { Array(memberships.keys) }

    /// The connection's place in a room; nil: it is not there.
    package subscript(room: RoomName) -> Membership? { memberships[room] }

    /// Comes into a room.
    ///
    /// - Parameters:
    ///   - mayHear: whether the rules let the client into the room.
    ///   - isTold: whether the others are told; asked for only if the client comes in.
    ///   - held: makes the object to keep for the room; called once it is certain that the client comes in.
    /// - Returns: the event for everybody there, the client included; nil: none.
    /// - Throws: `.tooLarge`, `.forbidden`; then nothing has changed.
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
            throw HermesError(.forbidden, "a connection can be in \(Self.limit) rooms at once")
        }
        let membership = Membership(member: member, held: held(), isAnnounced: isTold())
        memberships[room] = membership
        return membership.isAnnounced ? .joined(member) : nil
    }

    /// The member who wants to say something in a room.
    ///
    /// - Throws: `.forbidden`: the connection is not in the room, or the rules do not let it talk.
    package func speaker(in room: RoomName, mayTalk: Bool) throws(HermesError) -> RoomMember {
        guard let membership = memberships[room] else { throw Self.notInside }
        guard mayTalk else { throw BoundTopicRules.refusal(.publish, room) }
        return membership.member
    }

    /// Goes out of a room.
    ///
    /// - Returns: its place, for releasing the held object and telling the others.
    /// - Throws: `.forbidden`: it is not there.
    package mutating func leave(_ room: RoomName) throws(HermesError) -> Membership {
        guard let membership = memberships.removeValue(forKey: room) else { throw Self.notInside }
        return membership
    }

    /// The error for a room that the connection is not in.
    package static var notInside: HermesError { HermesError(.forbidden, "enter the room first") }

    /// Goes out of all rooms.
    package mutating func leaveAll() -> [(room: RoomName, membership: Membership)] {
        defer { memberships = [:] }
        return memberships.map { (room: $0.key, membership: $0.value) }
    }
}
