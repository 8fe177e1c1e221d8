// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

typealias WireMessage = SwiftProtobuf.Message

/// Translates room publications (LiveRoom bodies) to packets.
enum DelimitedRoomTranslation {
    /// A complete frame with the event; empty for publications that the native protocol cannot express.
    static func frame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // Cannot fail: the message has no required fields and is far below 4 GiB.
        try? DelimitedFrame.write(packet, into: &frame)
        return frame
    }

    /// The same with the packet as JSON.
    static func jsonFrame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // Cannot fail: every room event has a JSON form.
        try? DelimitedFrame.write(json: packet, into: &frame)
        return frame
    }

    private static func packet(for publication: Publication) -> Hermes_V1_Packet? {
        event(for: publication).map { event in
            var packet = Hermes_V1_Packet()
            packet.ephemeral.room = event
            return packet
        }
    }

    static func event(for publication: Publication) -> Hermes_V1_RoomEvent? {
        guard let room = publication.topic.room else { return nil }
        var event = Hermes_V1_RoomEvent()
        event.room = room.rawValue
        event.uid = UInt32(publication.sender?.rawValue ?? 0)
        let body = publication.payload
        if publication.kind == Publication.plainKind {
            guard let message = LiveRoomTranslation.plainText(publication) else { return nil }
            event.user = user(message.user)
            event.text.text = message.text
            return event
        }
        switch LiveRoomFrameType(rawValue: publication.kind) {
        case .join:
            guard let user = try? LiveRoom_UserInfo(wire: body) else { return nil }
            event.user = self.user(user)
            event.joined = Hermes_V1_RoomJoined()
        case .leave:
            guard let user = try? LiveRoom_UserInfo(wire: body) else { return nil }
            event.user = self.user(user)
            event.left = Hermes_V1_RoomLeft()
        case .text:
            guard let message = try? LiveRoom_ChatMessage(wire: body) else { return nil }
            event.user = user(message.user)
            event.text.text = message.text
        case .gift:
            guard let message = try? LiveRoom_GiftMessage(wire: body) else { return nil }
            event.user = user(message.user)
            event.gift.name = message.giftname
            event.gift.url = message.giftURL
            event.gift.count = message.giftcount
        case .notice where publication.isServers:
            guard let notice = try? LiveRoom_SystemNotice(wire: body) else { return nil }
            event.notice.text = notice.text
            // Only the server sends notices.
            event.topicSeq = number("seq", of: publication)
            event.topicEpoch = number("epoch", of: publication)
        default:
            // Of the server's own publications, all others are for one viewer.
            guard !publication.isServers else { return nil }
            event.custom.type = UInt32(publication.kind)
            event.custom.data = protobufBytes(body.readableBytesView)
        }
        return event
    }

    private static func number(_ name: String, of publication: Publication) -> UInt64 {
        publication.details?.userProperties.first { $0.name == name }.flatMap { UInt64($0.value) } ?? 0
    }

    private static func user(_ info: LiveRoom_UserInfo) -> Hermes_V1_RoomUser {
        var user = Hermes_V1_RoomUser()
        user.level = info.level
        user.name = info.name
        user.iconURL = info.iconURL
        return user
    }
}
