// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Room events as the bodies of LiveRoom's frames: the form in which subscribers of a room's topic get them.
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
            // Cannot happen: all required fields are set.
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
        switch kind {
        case .joined, .left: MessageParts.count(LiveRoom_UserInfo.self, wire: payload)
        case .said: MessageParts.count(LiveRoom_ChatMessage.self, wire: payload)
        case .gave: MessageParts.count(LiveRoom_GiftMessage.self, wire: payload)
        case .noticed: MessageParts.count(LiveRoom_SystemNotice.self, wire: payload)
        case .kicked: MessageParts.count(LiveRoom_Kicked.self, wire: payload)
        case .application: 0
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
