// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

typealias WireMessage = SwiftProtobuf.Message

/// Translates room events to packets, and requests about rooms to room events.
enum DelimitedRoomTranslation {
    // MARK: To clients

    /// A complete frame with the event; empty for publications that say nothing.
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

    static func packet(for publication: Publication) -> Hermes_V1_Packet? {
        RoomEvent(publication).map(packet(for:))
    }

    static func packet(for event: RoomEvent) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.ephemeral.room = self.event(event)
        return packet
    }

    private static func event(_ event: RoomEvent) -> Hermes_V1_RoomEvent {
        var answer = Hermes_V1_RoomEvent()
        answer.room = event.room.rawValue
        answer.uid = UInt32(event.sender?.rawValue ?? 0)
        if let member = event.content.member { answer.user = user(member) }
        switch event.content {
        case .joined: answer.joined = Hermes_V1_RoomJoined()
        case .left: answer.left = Hermes_V1_RoomLeft()
        case .said(_, let text): answer.text.text = text
        case .gave(_, let gift):
            answer.gift.name = gift.name
            answer.gift.url = gift.url
            answer.gift.count = gift.count
        case .noticed(let text, _):
            answer.notice.text = text
            answer.topicSeq = event.place?.seq ?? 0
            answer.topicEpoch = event.place?.epoch ?? 0
        case .kicked(let removal): answer.kicked.reason = removal.reason
        case .application(let type, let data):
            answer.custom.type = UInt32(type)
            answer.custom.data = protobufBytes(data.readableBytesView)
        }
        return answer
    }

    private static func user(_ member: RoomMember) -> Hermes_V1_RoomUser {
        var user = Hermes_V1_RoomUser()
        user.level = member.level
        user.name = member.name
        user.iconURL = member.iconURL
        return user
    }

    // MARK: From clients

    /// The room member as the client describes it.
    ///
    /// - Parameter name: the name of the client's account, for a client that chooses no name.
    static func member(_ user: Hermes_V1_RoomUser, orNamed name: String) -> RoomMember {
        RoomMember(level: user.level, name: user.name.isEmpty ? name : user.name, iconURL: user.iconURL)
    }

    /// Returns the event that a member asks to publish.
    ///
    /// - Throws: `.unsupported` for a request that publishes nothing; `.tooLarge`, `.invalidArgument`.
    static func content(
        of request: Hermes_V1_RoomRequest.OneOf_Request?,
        by member: RoomMember
    ) throws(HermesError) -> RoomEvent.Content {
        let content: RoomEvent.Content
        switch request {
        case .text(let text): content = .said(member, text.text)
        case .gift(let gift):
            content = .gave(member, RoomGift(name: gift.name, url: gift.url, count: gift.count))
        case .custom(let custom):
            guard let type = UInt16(exactly: custom.type), custom.data.count <= RoomLimits.maxApplicationBytes else {
                throw RoomEvent.Content.badApplicationEvent
            }
            content = .application(type, ByteBuffer(bytes: custom.data))
        case .enter, .leave, nil:
            throw HermesError(.unsupported, "the server does not know this room request")
        }
        try content.check()
        return content
    }
}
