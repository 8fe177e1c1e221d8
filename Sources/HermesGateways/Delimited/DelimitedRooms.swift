// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import NIOCore

/// The rooms of one connection.
struct DelimitedRooms {
    /// The most rooms of one connection.
    static let limit = 100

    struct Membership {
        let subscription: TopicSubscription
        let user: LiveRoom_UserInfo
        /// Whether the others were told that it joined, so that they are told that it leaves.
        let isAnnounced: Bool
    }

    var memberships: [RoomName: Membership] = [:]

    /// Leaves all rooms; tells the others unless the server is stopping.
    mutating func leaveAll(on topics: TopicShard, as sender: UserID?, isAnnounced: Bool) {
        for membership in memberships.values { topics.unsubscribe(membership.subscription) }
        for (room, membership) in memberships where isAnnounced {
            Self.announceLeave(of: membership, from: room, on: topics, as: sender)
        }
        memberships = [:]
    }

    /// Tells the others that a user left of whom they were told.
    static func announceLeave(
        of membership: Membership,
        from room: RoomName,
        on topics: TopicShard,
        as sender: UserID?
    ) {
        // Cannot fail: all required fields are set. If it did, the others would see a stale name.
        guard membership.isAnnounced, let body = try? membership.user.wireBuffer() else { return }
        topics.publish(LiveRoomTranslation.publication(of: body, type: .leave, to: room.topic, sender: sender))
    }
}

/// Rooms: topics whose payloads are LiveRoom bodies, so that viewers of both protocols share them.
extension DelimitedConnection: TopicSubscriber {
    func room(_ request: Hermes_V1_RoomRequest, id: UInt64, from sender: Sender) {
        guard let room = RoomName(request.room) else {
            return fail(id, HermesError(.invalidArgument, "a room's name is 1 to 64 letters, digits, '-', '_' or '.'"))
        }
        if case .enter(let enter) = request.request { return self.enter(room, as: enter.user, id: id, from: sender) }
        guard let membership = rooms?.memberships[room] else {
            return fail(id, HermesError(.forbidden, "enter the room first"))
        }
        do {
            let isLeaving = if case .leave = request.request { true } else { false }
            guard isLeaving || may(.publish, room) else { throw BoundTopicRules.refusal(.publish, room) }
            switch request.request {
            case .leave:
                leave(room, membership)
            case .text(let text):
                guard text.text.utf8.count <= 4_096 else {
                    throw HermesError(.tooLarge, "a room text is at most 4 KiB")
                }
                var message = LiveRoom_ChatMessage()
                message.user = membership.user
                message.text = text.text
                try publish(.text, message, to: room, from: sender)
            case .gift(let gift):
                guard gift.name.utf8.count <= 256, gift.url.utf8.count <= 1_024 else {
                    throw HermesError(.tooLarge, "a gift's name is at most 256 bytes, its url 1,024")
                }
                var message = LiveRoom_GiftMessage()
                message.user = membership.user
                message.giftname = gift.name
                message.giftURL = gift.url
                message.giftcount = gift.count
                try publish(.gift, message, to: room, from: sender)
            case .custom(let custom):
                guard let kind = UInt16(exactly: custom.type), kind >= 16, custom.data.count <= 65_536 else {
                    throw HermesError(.invalidArgument, "custom.type is 16 to 65,535, its data at most 64 KiB")
                }
                publish(LiveRoomFrameType(rawValue: kind), ByteBuffer(bytes: custom.data), to: room, from: sender)
            case .enter, nil:
                throw HermesError(.unsupported, "the server does not know this room request")
            }
            succeed(id)
        } catch let error as HermesError {
            fail(id, error)
        } catch {
            fail(id, HermesError(.invalidArgument, "the room request cannot be passed on", cause: error))
        }
    }

    package func removed(_ account: Account?, from room: RoomName) -> Bool {
        guard let user, user == account?.id ?? user, let membership = rooms?.memberships[room] else { return false }
        remove(membership, from: room, "removed from the room")
        return true
    }

    /// Removes the connection from rooms that the new rules forbid, and tells the client.
    package func accessChanged() {
        for (room, membership) in rooms?.memberships ?? [:] where !may(.subscribe, room) {
            remove(membership, from: room, BoundTopicRules.refusal(.subscribe, room).message)
        }
    }

    private func remove(_ membership: DelimitedRooms.Membership, from room: RoomName, _ reason: String) {
        leave(room, membership)
        // The connection no longer gets the room's events, so it is told directly.
        var packet = Hermes_V1_Packet()
        packet.ephemeral.room.room = room.rawValue
        packet.ephemeral.room.kicked.reason = reason
        write(packet)
    }

    private func leave(_ room: RoomName, _ membership: DelimitedRooms.Membership) {
        let topics = connection.loop.topics
        topics.unsubscribe(membership.subscription)
        rooms?.memberships[room] = nil
        DelimitedRooms.announceLeave(of: membership, from: room, on: topics, as: user)
    }

    private func enter(_ room: RoomName, as user: Hermes_V1_RoomUser, id: UInt64, from sender: Sender) {
        var info = LiveRoom_UserInfo()
        info.level = user.level
        info.name = user.name.isEmpty ? sender.principal.nickName.rawValue : user.name
        info.iconURL = user.iconURL
        guard info.name.utf8.count <= 256, info.iconURL.utf8.count <= 1_024 else {
            return fail(id, HermesError(.tooLarge, "user.name is at most 256 bytes, user.icon_url 1,024"))
        }
        guard may(.subscribe, room) else { return fail(id, BoundTopicRules.refusal(.subscribe, room)) }
        var rooms = rooms ?? DelimitedRooms()
        guard rooms.memberships[room] == nil else { return fail(id, HermesError(.forbidden, "already in this room")) }
        guard rooms.memberships.count < DelimitedRooms.limit else {
            return fail(id, HermesError(.forbidden, "a connection can be in \(DelimitedRooms.limit) rooms at once"))
        }
        let subscription = connection.loop.topics.subscribe(self, to: room.topic)
        // A viewer that may only listen joins and leaves unannounced: its name would be a message.
        let isAnnounced = may(.publish, room)
        rooms.memberships[room] = DelimitedRooms.Membership(
            subscription: subscription,
            user: info,
            isAnnounced: isAnnounced
        )
        self.rooms = rooms
        do {
            if isAnnounced { try publish(.join, info, to: room, from: sender) }
        } catch {
            return fail(id, HermesError(.invalidArgument, "the join cannot be passed on", cause: error))
        }
        countMembers(of: room, id: id)
    }

    private func countMembers(of room: RoomName, id: UInt64) {
        guard id != 0 else { return }
        let plane = environment.loops.topicPlane
        connection.ask { () async throws(HermesError) in
            await plane.subscriberCount(of: room.topic)
        } then: { [self] result in
            guard case .success(let count) = result else { return }
            var state = Hermes_V1_RoomState()
            state.room = room.rawValue
            state.memberCount = UInt32(clamping: count)
            succeed(id, .room(state))
        }
    }

    private func publish(
        _ type: LiveRoomFrameType,
        _ message: some WireMessage,
        to room: RoomName,
        from sender: Sender
    ) throws {
        publish(type, try message.wireBuffer(), to: room, from: sender)
    }

    private func publish(_ type: LiveRoomFrameType, _ payload: ByteBuffer, to room: RoomName, from sender: Sender) {
        let user = sender.principal.user
        let publication = LiveRoomTranslation.publication(of: payload, type: type, to: room.topic, sender: user)
        connection.tally.messagesIn += 1
        let outcome = connection.loop.topics.publish(publication)
        if outcome.isCongested { connection.slowDown() }
        connection.charge(.viewers(outcome.localCount))
    }

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        if isCarried {
            guard let event = DelimitedRoomTranslation.event(for: delivery.publication) else { return }
            var packet = Hermes_V1_Packet()
            packet.ephemeral.room = event
            connection.tally.messagesOut += 1
            return write(packet, delivery.publication.dropClass)
        }
        let frame =
            isJSON
            ? delivery.encoded(.delimitedJSON, by: DelimitedRoomTranslation.jsonFrame)
            : delivery.encoded(.delimited, by: DelimitedRoomTranslation.frame)
        guard frame.readableBytes > 0 else { return }
        connection.tally.messagesOut += 1
        connection.write(delivery.publication.dropClass, frame: frame)
    }
}
