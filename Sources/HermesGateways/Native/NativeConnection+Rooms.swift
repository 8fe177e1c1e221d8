// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import NIOCore

/// Rooms. The clients of all protocols share them.
extension NativeConnection: TopicSubscriber {
    // MARK: Requests

    func room(_ request: Hermes_V1_RoomRequest, id: UInt64, from sender: Sender) {
        do throws(HermesError) {
            let room = try RequestedIDs.room(request.room)
            switch request.request {
            case .enter(let enter):
                try self.enter(room, as: enter.user, from: sender)
                return countMembers(of: room, id: id)
            case .leave:
                try leave(room)
            case .text, .gift, .custom, nil:
                let member = try (rooms ?? RoomMemberships()).speaker(in: room, mayTalk: may(.publish, room))
                try publish(try RoomEvent.Content(request.request, by: member), to: room)
            }
            succeed(id)
        } catch {
            fail(id, error)
        }
    }

    private func enter(_ room: RoomName, as user: Hermes_V1_RoomUser, from sender: Sender) throws(HermesError) {
        var rooms = rooms ?? RoomMemberships()
        let joined = try rooms.enter(
            room,
            as: RoomMember(user, orNamed: sender.principal.nickName.rawValue),
            mayHear: may(.subscribe, room),
            isTold: may(.publish, room) && connection.tellsArrival(in: room.topic)
        ) {
            connection.loop.topics.subscribe(self, to: room.topic)
        }
        self.rooms = rooms
        if let joined { try publish(joined, to: room) }
    }

    private func countMembers(of room: RoomName, id: UInt64) {
        guard id != 0 else { return }
        let counts = environment.roomCounts
        let here = connection.loop.topics.subscriberCount(of: room.topic)
        connection.ask { () async throws(HermesError) in
            await counts.members(of: room, here: here)
        } then: { [self] result in
            guard case .success(let count) = result else { return }
            var state = Hermes_V1_RoomState()
            state.room = room.rawValue
            state.memberCount = UInt32(clamping: count)
            succeed(id, .room(state))
        }
    }

    private func publish(_ content: RoomEvent.Content, to room: RoomName) throws(HermesError) {
        let publication = try Publication(RoomEvent(content, in: room, sender: user))
        connection.tally.messagesIn += 1
        let outcome = connection.loop.topics.publish(publication)
        connection.keepPace(with: outcome)
        connection.charge(.viewers(outcome.localCount))
    }

    // MARK: Going

    private func leave(_ room: RoomName) throws(HermesError) {
        guard let membership = try rooms?.leave(room) else { throw RoomMemberships<TopicSubscription>.notInside }
        connection.loop.topics.unsubscribe(membership.held)
        bidFarewell(membership, in: room, as: user)
    }

    /// Leaves all rooms.
    ///
    /// - Parameter isServerStopping: whether the server is stopping. If so, the other members are not notified,
    ///   because everybody leaves at once.
    func leave(_ rooms: RoomMemberships<TopicSubscription>, as user: UserID?, isServerStopping: Bool) {
        var rooms = rooms
        let left = rooms.leaveAll()
        for (_, membership) in left { connection.loop.topics.unsubscribe(membership.held) }
        guard !isServerStopping else { return }
        for (room, membership) in left { bidFarewell(membership, in: room, as: user) }
    }

    private func bidFarewell(
        _ membership: RoomMemberships<TopicSubscription>.Membership,
        in room: RoomName,
        as user: UserID?
    ) {
        // This cannot fail, because every member can be encoded. If it failed, the other members would continue to
        // see this member.
        guard let farewell = membership.farewell,
            let publication = try? Publication(RoomEvent(farewell, in: room, sender: user))
        else { return }
        let outcome = connection.loop.topics.publish(publication)
        connection.keepPace(with: outcome)
        connection.chargeInTheEnd(.viewers(outcome.localCount))
    }

    package func removed(by expulsion: RoomExpulsion) -> Bool {
        guard user != nil, expulsion.means(user), rooms?[expulsion.room] != nil else { return false }
        remove(from: expulsion.room, .byOperator)
        return true
    }

    /// Removes the connection from rooms that the rules forbid now, and notifies the client.
    package func accessChanged() {
        access.forget()
        for room in rooms?.names ?? [] where !may(.subscribe, room) { remove(from: room, .forbidden(room)) }
    }

    private func remove(from room: RoomName, _ removal: RoomRemoval) {
        // This cannot fail, because the callers have checked that the connection is in the room.
        guard (try? leave(room)) != nil else { return }
        // The connection no longer gets the room's events, so the client is notified directly.
        write(NativeRoomTranslation.packet(for: RoomEvent(.kicked(removal), in: room)))
    }

    // MARK: To the client

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        guard isCarried else { return writeFrame(delivery) }
        guard let packet = NativeRoomTranslation.packet(for: delivery.publication) else { return }
        connection.tally.messagesOut += 1
        write(packet, delivery.publication.dropClass)
    }
}
