// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The LiveRoom protocol: frames to and from one room. The server does not answer frames.
struct LiveRoomLink: ConnectionLink {
    typealias Decoder = LiveRoomFrameDecoder
    typealias Request = LiveRoomFrame
    typealias Answer = Never
    typealias Event = RoomEvent
    typealias Login = Void

    let maxFrameBytes: Int
    let room: String?
    let token: String?
    let device: String?
    let user: RoomUser?
    private var backlog = 0
    private var backlogBytes = 0
    /// Whether the room has sent a frame on the present connection. If so, the viewer was let in.
    private var hasHeard = false
    /// The time at which the viewer sent its enter frame.
    private var enteredAt: NIODeadline?

    /// The time from which the code 1001 means that no heartbeat arrived in time. This is an estimate. The server
    /// refuses a viewer without a required token directly after the enter frame. It ends a connection without
    /// heartbeats after the time of its setting `liveroom.silence`. This time is 10 s by default, and may be as short
    /// as 1 s.
    private static let refusalTime = TimeAmount.seconds(5)

    init(room: String?, token: String?, device: String?, user: RoomUser?, maxFrameBytes: Int) {
        self.room = room
        self.token = token
        self.device = device
        self.user = user
        self.maxFrameBytes = maxFrameBytes
    }

    /// Whether the viewer sends an enter frame. If so, the server uses the types for notices and removals. Otherwise,
    /// the numbers of these types belong to the application.
    private var hasEntered: Bool { room != nil || token != nil }

    mutating func connected(effects: inout Effects) throws {
        hasHeard = false
        enteredAt = nil
        if hasEntered {
            var enter = LiveRoom_Enter()
            if let room { enter.room = room }
            if let token { enter.token = token }
            if let device { enter.deviceID = device }
            effects.append(.send(try LiveRoomFrame(type: .enter, message: enter)))
        }
        if let user { effects.append(.send(try LiveRoomFrame(type: .join, message: user.liveRoom))) }
        effects.append(.authenticated(()))
    }

    mutating func becameLive(now: NIODeadline, effects: inout Effects) { enteredAt = now }

    mutating func received(_ frame: LiveRoomFrame, now: NIODeadline, effects: inout Effects) throws {
        if frame.type == .kicked, hasEntered {
            let kicked = try LiveRoom_Kicked(wire: frame.body, maxParts: nil)
            append(RoomEvent(room: room ?? "", user: nil, kind: .kicked(reason: kicked.reason)), &effects)
            let error = HermesClientError(ending: kicked.code, kicked.reason)
            effects.append(.kicked(error, mayReturn: mayReturn(after: kicked.code, now: now), advice: nil))
            return
        }
        hasHeard = true
        // A frame that does not parse is ignored, because the boundaries of the next frames are intact.
        guard let event = try? RoomEvent(frame, room: room ?? "", hasEntered: hasEntered) else { return }
        append(event, &effects)
    }

    /// Whether the viewer may enter again after the server ended the connection with this code.
    ///
    /// The code 1001 has two meanings: no heartbeat arrived in time, or the room requires a token. With a token, the
    /// answer to the next enter frame decides.
    private func mayReturn(after code: UInt32, now: NIODeadline) -> Bool {
        guard code == HermesClientError.notAuthenticatedOnServer else { return code >= 3000 }
        return token != nil || hasHeard || enteredAt.map { now - $0 >= Self.refusalTime } ?? false
    }

    mutating func write(_ request: LiveRoomFrame, id: UInt64, into buffer: inout ByteBuffer) throws {
        request.write(into: &buffer)
    }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        // Any body is valid. This one has the same length as the body that the published clients send.
        let body = ByteBuffer(string: "hermes live room heartbeat..")
        try LiveRoomFrame(type: .heartbeat, body: body).write(into: &buffer)
    }

    /// Rooms are live: each event is delivered at most once.
    func comesAgain(_ event: RoomEvent) -> Bool { false }

    func bytes(of event: RoomEvent) -> Int { event.textBytes }

    mutating func backlogChanged(_ count: Int, bytes: Int) {
        backlog = count
        backlogBytes = bytes
    }

    /// Adds an event, unless too many events wait for the app.
    private func append(_ event: RoomEvent, _ effects: inout Effects) {
        if backlog < Backlog.maxEphemeral, backlogBytes < Backlog.maxBytes { effects.append(.event(event)) }
    }
}

extension RoomUser {
    init(_ info: LiveRoom_UserInfo) {
        self.init(name: info.name, level: Int(info.level), iconURL: URL(wire: info.iconURL))
    }

    var liveRoom: LiveRoom_UserInfo {
        var info = LiveRoom_UserInfo()
        info.level = Int32(clamping: level)
        info.name = name
        info.iconURL = iconURL?.absoluteString ?? ""
        return info
    }
}

extension RoomEvent {
    /// Creates the event of a frame; nil if the frame carries no event.
    init?(_ frame: LiveRoomFrame, room: String, hasEntered: Bool) throws(WireError) {
        switch frame.type {
        case .join:
            self.init(room: room, user: RoomUser(try LiveRoom_UserInfo(wire: frame.body)), kind: .joined)
        case .leave:
            self.init(room: room, user: RoomUser(try LiveRoom_UserInfo(wire: frame.body)), kind: .left)
        case .text:
            let message = try LiveRoom_ChatMessage(wire: frame.body)
            self.init(room: room, user: RoomUser(message.user), kind: .text(message.text))
        case .gift:
            let message = try LiveRoom_GiftMessage(wire: frame.body)
            let kind = Kind.gift(name: message.giftname, count: Int(message.giftcount), url: URL(wire: message.giftURL))
            self.init(room: room, user: RoomUser(message.user), kind: kind)
        case .notice where hasEntered:
            self.init(room: room, user: nil, kind: .notice(try LiveRoom_SystemNotice(wire: frame.body).text))
        case .heartbeat, .enter:
            return nil
        default:
            let data = [UInt8](frame.body.readableBytesView)
            self.init(room: room, user: nil, kind: .custom(type: frame.type.rawValue, data: data))
        }
    }
}
