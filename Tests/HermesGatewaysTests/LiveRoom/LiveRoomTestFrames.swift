// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Frames in the form that viewers send.
enum LiveRoomTestFrames {
    static func nickName(_ name: String) throws -> NickName { try NickName(name) }

    static func user(_ name: String) -> LiveRoom_UserInfo {
        var user = LiveRoom_UserInfo()
        user.level = 7
        user.name = name
        user.iconURL = "icon1"
        return user
    }

    static func join(_ name: String) throws -> LiveRoomFrame { try LiveRoomFrame(type: .join, message: user(name)) }

    static func leave(_ name: String) throws -> LiveRoomFrame { try LiveRoomFrame(type: .leave, message: user(name)) }

    static func text(_ text: String, from name: String = "ann") throws -> LiveRoomFrame {
        var message = LiveRoom_ChatMessage()
        message.user = user(name)
        message.text = text
        return try LiveRoomFrame(type: .text, message: message)
    }

    static func gift(_ name: String = "yacht", count: Int32 = 99, from user: String = "ann") throws -> LiveRoomFrame {
        var message = LiveRoom_GiftMessage()
        message.user = self.user(user)
        message.giftname = name
        message.giftURL = "http://example.invalid/yacht.gif"
        message.giftcount = count
        return try LiveRoomFrame(type: .gift, message: message)
    }

    static func enter(room: String? = nil, token: String? = nil, device: String? = nil) throws -> LiveRoomFrame {
        var message = LiveRoom_Enter()
        if let room { message.room = room }
        if let token { message.token = token }
        if let device { message.deviceID = device }
        return try LiveRoomFrame(type: .enter, message: message)
    }

    static let heartbeat = raw(8, Array("this is a heartBeat message ".utf8))

    /// A frame with any body.
    static func raw(_ type: UInt16, _ body: [UInt8] = []) -> LiveRoomFrame {
        var bytes = ByteBuffer()
        bytes.writeMultipleIntegers(UInt32(body.count), type, endianness: .little)
        bytes.writeBytes(body)
        var decoder = LiveRoomFrameDecoder()
        guard let frame = try? decoder.next(from: &bytes) else { fatalError("the frame does not decode") }
        return frame
    }
}
