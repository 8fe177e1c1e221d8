// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

/// Tests the schema with bytes that Google's library has written with the published schema.
@Suite("IMPB schema")
struct IMPBSchemaTests {
    let vectors: Vectors

    init() throws {
        vectors = try Vectors("impb")
    }

    /// Returns the body of a vector as a message. Also checks that the encoded message has the same bytes.
    private func body<Body: Message>(_ name: String, as type: Body.Type = Body.self) throws -> Body {
        let bytes = try Array(vectors.bytes(name).dropFirst(8))
        let body = try Body(wire: bytes)
        #expect(try body.wireBytes(as: [UInt8].self) == bytes)
        return body
    }

    @Test
    func `registration: sign_in`() throws {
        let common: IMPB_Common = try body("register-request")
        #expect(common.method == .user)
        let user = try IMPB_User_msg(wire: common.body)
        #expect(user.cmd == .signIn)
        let request = try IMPB_signin_request(wire: user.body)
        #expect(request.nickName == "alice")
        #expect(request.pwd == "s3cret")

        let reply: IMPB_CommonRespon = try body("register-response")
        #expect(reply.isSuc)
        let response = try IMPB_sigin_response(wire: reply.respon)
        #expect(response.uid == 1)
        #expect(response.token == "tok")
    }

    @Test
    func `login, refused and log-out`() throws {
        let common: IMPB_Common = try body("login-request")
        let user = try IMPB_User_msg(wire: common.body)
        #expect(user.cmd == .login)
        let request = try IMPB_login_request(wire: user.body)
        #expect(request.nickName == "爱丽丝")
        #expect(request.pwd == "s3cret")
        #expect(request.ip == "192.168.0.100")
        #expect(request.port == 56741)
        #expect(request.deviceName == "iOS")
        #expect(request.deviceID == "9F2C")
        #expect(request.version == "1.0")

        let refused: IMPB_CommonRespon = try body("login-refused")
        #expect(!refused.isSuc)
        #expect(refused.error.type == .invalidParams)
        #expect(refused.error.msg == "wrong password")

        let leaving = try IMPB_User_msg(wire: body("logout-request", as: IMPB_Common.self).body)
        #expect(leaving.cmd == .logout)
        #expect(try IMPB_logout_request(wire: leaving.body).uid == 1)
    }

    @Test
    func `user info`() throws {
        let asking = try IMPB_User_msg(wire: body("user-info-request", as: IMPB_Common.self).body)
        #expect(asking.cmd == .userInfo)
        #expect(try IMPB_User_info_request(wire: asking.body).uid == 2)

        let reply: IMPB_CommonRespon = try body("user-info-response")
        let info = try IMPB_User_info_response(wire: reply.respon).userInfo
        #expect(info.uid == 2)
        #expect(info.nickName == "bob")
        #expect(info.avartaURL == "http://x/y.png")
        #expect(info.isOnline == 1)
        #expect(info.ipInfo.ip == "10.0.0.2")
        #expect(info.ipInfo.port == 56742)
        #expect(info.ipInfo.sockIp == "203.0.113.9")
        #expect(info.ipInfo.sockPort == 50850)
    }

    @Test
    func `chat messages`() throws {
        let text: IMPB_base_msg = try body("c2c-text")
        #expect(text.type == .c2C)
        let c2c = try IMPB_C2C_msg(wire: text.body)
        #expect(c2c.from == 1 && c2c.to == 2 && c2c.type == .text)
        #expect(try IMPB_msg_text_content(wire: c2c.content).text == "你好, bob")

        let place = try IMPB_C2C_msg(wire: body("c2c-location", as: IMPB_base_msg.self).body)
        #expect(place.type == .location)
        let location = try IMPB_msg_location_content(wire: place.content).location
        #expect(abs(location.lat - 31.2304) < 1e-9)
        #expect(abs(location.lon - 121.4737) < 1e-9)

        let toGroup: IMPB_base_msg = try body("group-text")
        #expect(toGroup.type == .group)
        let group = try IMPB_Group_msg(wire: toGroup.body)
        #expect(group.groupID == 9 && group.type == .text)
        #expect(try IMPB_msg_text_content(wire: group.content).text == "你好, bob")
    }

    @Test
    func `direct links`() throws {
        let common: IMPB_Common = try body("p2p-connect-request")
        #expect(common.method == .p2PConnect)
        let link = try IMPB_p2p_connect(wire: common.body)
        #expect(link.type == .connectRequest)
        let request = try IMPB_p2pconnect_request(wire: link.body)
        #expect(request.uid == 1 && request.targetUid == 2)

        let asked: IMPB_Notification_msg = try body("p2p-notification")
        #expect(asked.type == .p2PReceiveConnectReq && asked.targetUid == 2)
        let notification = try IMPB_p2p_receive_connect_notification(wire: asked.body)
        #expect(notification.sponsorUid == 1)
        #expect(notification.sponsorIpInfo.ip == "192.168.0.100")
        #expect(notification.targetInfo.sockIp == "203.0.113.9")

        let posting = try IMPB_p2p_connect(wire: body("p2p-post-ip", as: IMPB_Common.self).body)
        #expect(posting.type == .postIp)
        let posted = try IMPB_p2p_post_ip_request(wire: posting.body)
        #expect(posted.sponsorUid == 1 && posted.uid == 2 && posted.isReady)
        #expect(posted.ipInfo.ip == "10.0.0.2")

        let ready: IMPB_Notification_msg = try body("p2p-ready-notification")
        #expect(ready.type == .p2PConnectReady && ready.targetUid == 1)
        let address = try IMPB_p2p_connect_ready_notification(wire: ready.body)
        #expect(address.uid == 2 && address.ip == "203.0.113.9" && address.port == 50850)
    }

    @Test
    func `friend request`() throws {
        let request = try IMPB_add_friend_req(wire: vectors.bytes("friend-request-body"))
        #expect(request.targetID == "2")
        #expect(request.extMsg == "hi")
    }

    @Test
    func `numbers that no vector holds`() throws {
        func number(_ message: some Message) throws -> Int {
            var bytes = try message.wireBytes(as: [UInt8].self)[...]
            var key = 0
            var shift = 0
            while let byte = bytes.popFirst() {
                key |= Int(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 { break }
            }
            return key >> 3
        }
        #expect(try number(IMPB_login_request.with { $0.token = "t" }) == 8)
        #expect(try number(IMPB_C2C_msg.with { $0.fromInfo.uid = 1 }) == 3)
        #expect(try number(IMPB_C2C_msg.with { $0.toInfo.uid = 1 }) == 4)
        #expect(try number(IMPB_C2C_msg.with { $0.ext = [.init()] }) == 9)
        #expect(try number(IMPB_C2C_msg.with { $0.messageID = "m" }) == 10)
        #expect(try number(IMPB_C2C_msg.with { $0.serverTime = 1 }) == 11)
        #expect(try number(IMPB_C2C_msg.with { $0.seq = 1 }) == 12)
        #expect(try number(IMPB_C2C_msg.with { $0.clientID = "c" }) == 13)
        #expect(try number(IMPB_Group_msg.with { $0.groupInfo.groupID = 1 }) == 2)
        #expect(try number(IMPB_Group_msg.with { $0.from = 1 }) == 5)
        #expect(try number(IMPB_Group_msg.with { $0.fromInfo.uid = 1 }) == 6)
        #expect(try number(IMPB_Group_msg.with { $0.messageID = "m" }) == 10)
        #expect(try number(IMPB_Group_msg.with { $0.clientID = "c" }) == 13)
        #expect(try number(IMPB_msg_img_content.with { $0.imgURL = "u" }) == 1)
        #expect(try number(IMPB_msg_sound_content.with { $0.sourceURL = "u" }) == 2)
        #expect(try number(IMPB_msg_sound_content.with { $0.fildNme = "n" }) == 4)
        #expect(try number(IMPB_msg_expression_content.with { $0.name = "n" }) == 2)
        #expect(try number(IMPB_msg_cumstom_content.with { $0.info.key = "k" }) == 1)
        #expect(try number(IMPB_p2pconnect_response.with { $0.isExit = true }) == 2)
        #expect(try number(IMPB_p2pconnect_response.with { $0.targetIpInfo.ip = "i" }) == 4)
        #expect(try number(IMPB_p2p_post_ip_response.with { $0.isSuc = true }) == 1)
        #expect(try number(IMPB_receive_friend_req.with { $0.targetUid = "1" }) == 2)
        #expect(try number(IMPB_get_friend_list_req.with { $0.limit = 1 }) == 2)
        #expect(try number(IMPB_receive_friend_noti.with { $0.opUid = "1" }) == 2)
        #expect(try number(IMPB_add_friend_noti.with { $0.extMsg = "x" }) == 2)
        #expect(IMPB_Common.Method.group.rawValue == 5)
        #expect(IMPB_Content_type.custom.rawValue == 6)
        #expect(IMPB_base_msg.TypeEnum.broadcast.rawValue == 3)
        #expect(IMPB_Notification_msg.TypeEnum.cmd.rawValue == 3)
        #expect(IMPB_Message_msg.Cmd.read.rawValue == 4)
    }
}
