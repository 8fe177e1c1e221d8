// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf

/// A test client of IMPB, without the SDK.
final class IMPBTestClient: Sendable {
    let wire: WireClient<IMPBFrameDecoder>

    private init(_ wire: WireClient<IMPBFrameDecoder>) { self.wire = wire }

    static func connect(port: Int) async throws -> IMPBTestClient {
        IMPBTestClient(try await .connect(port: port))
    }

    func write(_ type: IMPBFrameType, _ seq: UInt32, _ body: some SwiftProtobuf.Message) async throws {
        try await wire.send(IMPBFrame(seq: seq, type: type, body: try body.wireBuffer()))
    }

    func next() async throws -> IMPBFrame {
        guard let frame = try await wire.next() else { throw Unexpected("the server closed the connection") }
        return frame
    }

    /// Returns the reply with this seq. Skips all frames before it.
    func reply(_ seq: UInt32) async throws -> IMPB_CommonRespon {
        while true {
            let frame = try await next()
            if frame.type == .request, frame.seq == seq { return try IMPB_CommonRespon(wire: frame.body) }
        }
    }

    /// Returns the next chat message. Skips all frames before it.
    func message() async throws -> IMPB_C2C_msg {
        while true {
            let frame = try await next()
            guard frame.type == .message else { continue }
            return try IMPB_C2C_msg(wire: IMPB_base_msg(wire: frame.body).body)
        }
    }

    func notification() async throws -> IMPB_Notification_msg {
        while true {
            let frame = try await next()
            if frame.type == .notification { return try IMPB_Notification_msg(wire: frame.body) }
        }
    }

    /// Returns the next notification of this kind. Skips all frames before it.
    func notification(_ type: IMPB_Notification_msg.TypeEnum) async throws -> IMPB_Notification_msg {
        while true {
            let notification = try await notification()
            if notification.type == type { return notification }
        }
    }

    /// Sends a ping and waits for its echo. Then the server has handled everything before the ping.
    func ping(_ seq: UInt32 = 7) async throws {
        try await wire.send(IMPBFrame(seq: seq, type: .ping))
        while true {
            let frame = try await next()
            if frame.type == .ping, frame.seq == seq { return }
        }
    }

    // MARK: Requests

    func ask(
        _ seq: UInt32,
        _ method: IMPB_Common.Method,
        _ message: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var common = IMPB_Common()
        common.method = method
        common.body = try message.wireBytes()
        try await write(.request, seq, common)
        return try await reply(seq)
    }

    func ask(
        _ seq: UInt32,
        _ cmd: IMPB_User_msg.Cmd,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_User_msg()
        message.cmd = cmd
        message.body = try body.wireBytes()
        return try await ask(seq, .user, message)
    }

    func ask(
        _ seq: UInt32,
        _ cmd: IMPB_Message_msg.Cmd,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_Message_msg()
        message.cmd = cmd
        message.body = try body.wireBytes()
        return try await ask(seq, .message, message)
    }

    func ask(
        _ seq: UInt32,
        _ type: IMPB_p2p_connect.TypeEnum,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_p2p_connect()
        message.type = type
        message.body = try body.wireBytes()
        return try await ask(seq, .p2PConnect, message)
    }

    func register(_ name: String) async throws -> IMPB_sigin_response {
        var request = IMPB_signin_request()
        request.nickName = name
        request.pwd = "password of \(name)"
        let reply = try await ask(1, .signIn, request)
        guard reply.isSuc else { throw Unexpected("\(reply.error)") }
        return try IMPB_sigin_response(wire: reply.respon)
    }

    func logIn(_ name: String, device: String = "phone", port: Int32 = 0) async throws -> IMPB_login_response {
        var request = IMPB_login_request()
        request.nickName = name
        request.pwd = "password of \(name)"
        request.deviceID = device
        request.ip = "10.0.0.\(port)"
        request.port = port
        let reply = try await ask(2, .login, request)
        guard reply.isSuc else { throw Unexpected("\(reply.error)") }
        return try IMPB_login_response(wire: reply.respon)
    }

    func send(_ message: IMPB_C2C_msg, seq: UInt32) async throws {
        var base = IMPB_base_msg()
        base.type = .c2C
        base.body = try message.wireBytes()
        try await write(.message, seq, base)
    }

    func send(_ text: String, to uid: UInt32, seq: UInt32) async throws {
        var content = IMPB_msg_text_content()
        content.text = text
        var message = IMPB_C2C_msg()
        message.to = Int32(uid)
        message.content = try content.wireBytes()
        try await send(message, seq: seq)
    }
}

extension IMPB_C2C_msg {
    /// The text of a text message.
    var text: String { (try? IMPB_msg_text_content(wire: content))?.text ?? "?" }
}
