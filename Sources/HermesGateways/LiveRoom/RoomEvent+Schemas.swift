// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

// Translates room events to and from the two schemas that define them: the native schema and LiveRoom's schema. The
// bodies of LiveRoom's frames are also the payloads of publications to a room's topic. A new kind of event needs
// cases in this file. The compiler reports missing cases.

// MARK: - The native schema

extension Hermes_V1_RoomEvent {
    init(_ event: RoomEvent) {
        self.init()
        room = event.room.rawValue
        uid = UInt32(event.sender?.rawValue ?? 0)
        if let member = event.content.member { user = Hermes_V1_RoomUser(member) }
        switch event.content {
        case .joined: joined = Hermes_V1_RoomJoined()
        case .left: left = Hermes_V1_RoomLeft()
        case .said(_, let text): self.text.text = text
        case .gave(_, let gift):
            self.gift.name = gift.name
            self.gift.url = gift.url
            self.gift.count = gift.count
        case .noticed(let text, _):
            notice.text = text
            topicSeq = event.place?.seq ?? 0
            topicEpoch = event.place?.epoch ?? 0
        case .kicked(let removal): kicked.reason = removal.reason
        case .application(let type, let data):
            custom.type = UInt32(type)
            custom.data = protobufBytes(data.readableBytesView)
        }
    }
}

extension RoomEvent.Content {
    /// Creates the event that a member asks to publish.
    ///
    /// - Throws: `.unsupported` for a request that publishes nothing; `.tooLarge` or `.invalidArgument` for an event
    ///   that is not allowed.
    init(_ request: Hermes_V1_RoomRequest.OneOf_Request?, by member: RoomMember) throws(HermesError) {
        switch request {
        case .text(let text): self = .said(member, text.text)
        case .gift(let gift): self = .gave(member, RoomGift(name: gift.name, url: gift.url, count: gift.count))
        case .custom(let custom):
            guard let type = UInt16(exactly: custom.type) else { throw Self.badApplicationEvent }
            guard custom.data.count <= RoomLimits.maxApplicationBytes else { throw Self.tooLongApplicationEvent }
            self = .application(type, ByteBuffer(bytes: custom.data))
        case .enter, .leave, nil:
            throw HermesError(.unsupported, "the server does not know this room request")
        }
        try check()
    }
}

extension Hermes_V1_RoomUser {
    fileprivate init(_ member: RoomMember) {
        self.init()
        level = member.level
        name = member.name
        iconURL = member.iconURL
    }
}

extension RoomMember {
    /// Creates the room member that the client describes.
    ///
    /// - Parameter name: the name of the client's account, for a client that chooses no name.
    init(_ user: Hermes_V1_RoomUser, orNamed name: String) {
        self.init(level: user.level, name: user.name.isEmpty ? name : user.name, iconURL: user.iconURL)
    }
}

// MARK: - The schema of LiveRoom

/// Translates room events to and from the bodies of LiveRoom's frames. Subscribers of a room's topic get the events in
/// this form.
struct LiveRoomPayloads: RoomPayloads {
    func payload(of content: RoomEvent.Content) throws(HermesError) -> ByteBuffer {
        do throws(WireError) {
            switch content {
            case .joined(let member), .left(let member):
                return try LiveRoom_UserInfo(member).wireBuffer()
            case .said(let member, let text):
                var message = LiveRoom_ChatMessage()
                message.user = LiveRoom_UserInfo(member)
                message.text = text
                return try message.wireBuffer()
            case .gave(let member, let gift):
                var message = LiveRoom_GiftMessage()
                message.user = LiveRoom_UserInfo(member)
                message.giftname = gift.name
                message.giftURL = gift.url
                message.giftcount = gift.count
                return try message.wireBuffer()
            case .noticed(let text, let time):
                var message = LiveRoom_SystemNotice()
                message.text = text
                message.serverTime = time.rawValue
                return try message.wireBuffer()
            case .kicked(let removal):
                return try LiveRoom_Kicked(removal).wireBuffer()
            case .application(_, let data):
                return data
            }
        } catch {
            // This cannot happen, because all required fields are set.
            throw HermesError(.internalError, "the room event cannot be encoded", cause: error)
        }
    }

    func content(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> RoomEvent.Content? {
        do throws(WireError) {
            switch kind {
            case .joined: return .joined(RoomMember(try LiveRoom_UserInfo(wire: payload)))
            case .left: return .left(RoomMember(try LiveRoom_UserInfo(wire: payload)))
            case .said:
                let message = try LiveRoom_ChatMessage(wire: payload)
                return .said(RoomMember(message.user), message.text)
            case .gave:
                let message = try LiveRoom_GiftMessage(wire: payload)
                let gift = RoomGift(name: message.giftname, url: message.giftURL, count: message.giftcount)
                return .gave(RoomMember(message.user), gift)
            case .noticed:
                let message = try LiveRoom_SystemNotice(wire: payload)
                return .noticed(message.text, at: Timestamp(rawValue: message.serverTime))
            case .kicked:
                let message = try LiveRoom_Kicked(wire: payload)
                return .kicked(RoomRemoval(HermesError.Code(rawValue: message.code), message.reason))
            case .application(let type):
                return .application(type, payload)
            }
        } catch {
            return nil
        }
    }

    func partCount(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> Int {
        if case .application = kind { return 0 }
        return LiveRoomFrameType(kind).partCount(of: payload)
    }
}

extension LiveRoomFrameType {
    /// Creates the type of an event's frame. A kind of event has the same number in all protocols.
    init(_ kind: RoomEvent.Kind) { self.init(rawValue: kind.number) }
}

extension RoomEvent.Kind {
    /// Creates the kind of a viewer's frame. If a viewer may send a frame of one of the server's types, the type
    /// belongs to the application.
    init(_ type: LiveRoomFrameType) {
        if let kind = Self(number: type.rawValue), !kind.isServers {
            self = kind
        } else {
            self = .application(type.rawValue)
        }
    }
}

extension LiveRoom_UserInfo {
    fileprivate init(_ member: RoomMember) {
        self.init()
        level = member.level
        name = member.name
        iconURL = member.iconURL
    }
}

extension RoomMember {
    fileprivate init(_ user: LiveRoom_UserInfo) {
        self.init(level: user.level, name: user.name, iconURL: user.iconURL)
    }
}

extension LiveRoom_Kicked {
    init(_ removal: RoomRemoval) {
        self.init()
        code = removal.code.rawValue
        reason = removal.reason
    }
}
