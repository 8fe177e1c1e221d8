// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct IMPBSocialTests {
    @Test func `friends are asked told and listed`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer("ann", at: server)
            let bob = try await Peer("bob", at: server)

            let request = IMPB_add_friend_req.with {
                $0.targetID = "BOB"
                $0.extMsg = "it is me"
            }
            #expect(try await ann.friend(3, .addFriend, request).isSuc)
            let asked = try await bob.notification()
            #expect(asked.type == .addfriendReq)
            #expect(asked.targetUid == bob.uid)
            #expect(asked.seq == 1)
            #expect(asked.serverTime > 0)
            let body = try IMPB_add_friend_noti(wire: asked.body)
            #expect(body.opID == String(ann.uid))
            #expect(body.extMsg == "it is me")
            #expect(try await bob.friends(3).isEmpty)

            let yes = IMPB_receive_friend_req.with {
                $0.isReceive = true
                $0.targetUid = String(ann.uid)
            }
            #expect(try await bob.friend(4, .receiveFriend, yes).isSuc)
            let answer = try await ann.notification()
            #expect(answer.type == .receiveFriend)
            let told = try IMPB_receive_friend_noti(wire: answer.body)
            #expect(told.isReceive)
            #expect(told.opUid == String(bob.uid))
            #expect(try await ann.friends(5).map(\.nickName) == ["bob"])
            #expect(try await bob.friends(5).map(\.uid) == [ann.uid])
            #expect(try await bob.friends(6, page: 1).isEmpty)

            for target in [String(bob.uid), "bob"] {
                let found = try await ann.friend(
                    7,
                    .userInfoByID,
                    IMPB_get_user_info_by_id.with { $0.targetID = target }
                )
                #expect(try IMPB_user_info_res(wire: found.respon).userInfo.uid == bob.uid)
            }

            // Digits always mean a uid, even if an account has the digits as its name.
            _ = try await Peer("4242", at: server)
            let digits = IMPB_get_user_info_by_id.with { $0.targetID = "4242" }
            #expect(try await ann.friend(7, .userInfoByID, digits).error.code == HermesError.Code.notFound.rawValue)

            let annTarget = IMPB_friend_target_req.with { $0.uid = ann.uid }
            #expect(try await bob.friend(8, .removeFriend, annTarget).isSuc)
            let removed = try await ann.notification()
            #expect(removed.type == .friendRemoved)
            #expect(try IMPB_friend_target_req(wire: removed.body).uid == bob.uid)
            #expect(try await ann.friends(9).isEmpty)

            #expect(try await bob.friend(10, .block, annTarget).isSuc)
            #expect(try await ann.friend(11, .addFriend, request).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await bob.friend(12, .unblock, annTarget).isSuc)
            #expect(try await ann.friend(13, .addFriend, request).isSuc)
        }
    }

    @Test(arguments: [99, 0, 1 << 31, .max] as [UInt32])
    func `a uid that no account can have is answered like one that no account has`(uid: UInt32) async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer("ann", at: server)
            let notFound = HermesError.Code.notFound.rawValue
            let add = IMPB_add_friend_req.with { $0.targetID = String(uid) }
            #expect(try await ann.friend(3, .addFriend, add).error.code == notFound)
            let find = IMPB_get_user_info_by_id.with { $0.targetID = String(uid) }
            #expect(try await ann.friend(4, .userInfoByID, find).error.code == notFound)
            let target = IMPB_friend_target_req.with { $0.uid = uid }
            for cmd in [IMPB_Friend_msg.Cmd.removeFriend, .block, .unblock] {
                #expect(try await ann.friend(5, cmd, target).error.code == notFound, "\(cmd)")
            }
            let create = IMPB_group_create_request.with {
                $0.name = "trip"
                $0.memberUids = [uid]
            }
            #expect(try await ann.group(6, .create, create).error.code == notFound)

            let bob = try await server.impb()
            _ = try await bob.register("bob")
            _ = try await bob.logIn("bob")
            let info = IMPB_User_info_request.with { $0.uid = uid }
            #expect(try await bob.ask(3, .userInfo, info).error.code == notFound)
            let forbidden = HermesError.Code.forbidden.rawValue
            let link = IMPB_p2pconnect_request.with { $0.targetUid = uid }
            #expect(try await bob.ask(4, .connectRequest, link).error.code == forbidden)
            let post = IMPB_p2p_post_ip_request.with { $0.sponsorUid = uid }
            #expect(try await bob.ask(5, .postIp, post).error.code == forbidden)
            let message = IMPB_C2C_msg.with { $0.to = Int32(truncatingIfNeeded: uid) }
            try await bob.send(message, seq: 6)
            #expect(try await bob.reply(6).error.code == notFound)
        }
    }

    @Test func `group messages go both ways`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer("ann", at: server)
            let tablet = try await Peer("ann", device: "tablet", uid: ann.uid, at: server)
            let bob = try await Peer("bob", at: server)

            let create = IMPB_group_create_request.with {
                $0.name = "trip"
                $0.memberUids = [bob.uid]
            }
            let created = try await ann.group(3, .create, create)
            let id = try IMPB_group_response(wire: created.respon).group.groupID
            for peer in [ann, tablet, bob] {
                let notification = try await peer.notification()
                #expect(notification.type == .groupChanged)
                let body = try IMPB_group_notification(wire: notification.body)
                #expect(body.kind == .created)
                #expect(body.group.groupID == id)
                #expect(body.uids == [ann.uid, bob.uid])
            }

            let sent = try await ann.talk(4, "hello", in: id, clientID: "c1")
            let receipt = try IMPB_Message_receipt(wire: sent.respon)
            #expect(receipt.conversationSeq == 1)
            #expect(receipt.clientID == "c1")
            for peer in [tablet, bob] {
                let message = try await peer.message()
                #expect(message.groupID == id)
                #expect(message.from == Int32(ann.uid))
                #expect(message.fromInfo.nickName == "ann")
                #expect(message.messageID == receipt.messageID)
                #expect(message.serverTime == receipt.serverTime)
                #expect(message.seq == 2)
                #expect(message.clientID == (peer === bob ? "" : "c1"))
                #expect(try IMPB_msg_text_content(wire: message.content).text == "hello")
            }
            #expect(try await bob.talk(4, "hi", in: id).isSuc)
            #expect(try await ann.message().from == Int32(bob.uid))

            let target = IMPB_group_target_request.with { $0.groupID = id }
            let info = try IMPB_group_response(wire: await bob.group(5, .info, target).respon).group
            #expect(info.members.map(\.nickName) == ["ann", "bob"])
            #expect(info.members.map(\.role) == [.owner, .member])
            let list = try IMPB_group_list_response(wire: await bob.group(6, .list, IMPB_group_list_request()).respon)
            #expect(list.groups.map(\.name) == ["trip"])
            let impossible = IMPB_group_list_request.with { $0.afterGroupID = -5 }
            let refused = try await bob.group(20, .list, impossible)
            #expect(!refused.isSuc && refused.error.code == HermesError.Code.invalidArgument.rawValue)
            let history = IMPB_history_request.with { $0.conversation.groupID = UInt32(id) }
            let found = try IMPB_history_response(wire: await bob.inbox(7, .history, history).respon)
            #expect(found.messages.map(\.msg.type) == [.group, .group])

            let remove = IMPB_group_members_request.with {
                $0.groupID = id
                $0.removeUids = [bob.uid]
            }
            #expect(try await ann.group(8, .changeMembers, remove).isSuc)
            let forbidden = HermesError.Code.forbidden.rawValue
            #expect(try await bob.talk(8, "still here?", in: id).error.code == forbidden)
            #expect(try await bob.group(9, .info, target).error.code == forbidden)
            let gone = try IMPB_group_notification(wire: await bob.notification().body)
            #expect(gone.kind == .membersRemoved)
            #expect(gone.uids == [bob.uid])
            #expect(try await ann.group(10, .dissolve, target).isSuc)
            #expect(try await ann.talk(11, "anybody?", in: id).error.code == forbidden)
        }
    }

    @Test func `the history of a group is opened to its members and closed again`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer("ann", at: server)
            let created = try await ann.group(2, .create, IMPB_group_create_request.with { $0.name = "trip" })
            let id = try IMPB_group_response(wire: created.respon).group.groupID
            func change(
                _ seq: UInt32,
                _ fill: (inout IMPB_group_change_request) -> Void
            ) async throws -> IMPB_Group_info {
                var request = IMPB_group_change_request()
                request.groupID = id
                fill(&request)
                return try IMPB_group_response(wire: try await ann.group(seq, .change, request).respon).group
            }
            #expect(try await change(3) { $0.historyOpen = true }.historyOpen)
            #expect(try await change(4) { $0.name = "trips" }.historyOpen)
            #expect(try await change(5) { $0.historyOpen = false }.historyOpen == false)
        }
    }

    @Test func `an absent member gets it at the next login across protocols`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer("ann", at: server)
            let bob = try await Peer("bob", at: server)
            try await bob.close()
            let desk = try await server.delimited()
            let carl = try await desk.register("carl").uid
            let create = IMPB_group_create_request.with {
                $0.name = "trip"
                $0.memberUids = [bob.uid, carl]
            }
            let created = try await ann.group(3, .create, create)
            let id = try IMPB_group_response(wire: created.respon).group.groupID
            #expect(try await desk.event().group.group.id == UInt32(id))
            #expect(try await ann.talk(4, "hello", in: id).isSuc)
            let atDesk = try await desk.event().message
            #expect(atDesk.content.text == "hello")
            #expect(atDesk.conversation.groupID == UInt32(id))
            let again = try await Peer("bob", uid: bob.uid, at: server)
            #expect(try await again.notification().type == .offlineMsg)
            #expect(try await again.notification().type == .groupChanged)
            #expect(try await again.message().messageID == atDesk.id)
        }
    }
}

/// A client that keeps the notifications that arrive before an answer, because a notification may come before or after
/// the answer.
private final class Peer {
    private let client: IMPBTestClient
    private var kept: [IMPBFrame] = []
    let uid: UInt32

    /// - Parameter uid: the uid of an existing account; nil registers a new account.
    init(_ name: String, device: String = "phone", uid: UInt32? = nil, at server: GatewayHarness) async throws {
        client = try await server.impb()
        if let uid { self.uid = uid } else { self.uid = try await client.register(name).uid }
        _ = try await client.logIn(name, device: device)
    }

    func close() async throws { try await client.wire.close() }

    private func next(_ take: (IMPBFrame) -> Bool) async throws -> IMPBFrame {
        if let index = kept.firstIndex(where: take) { return kept.remove(at: index) }
        while true {
            let frame = try await client.next()
            if take(frame) { return frame }
            kept.append(frame)
        }
    }

    func notification() async throws -> IMPB_Notification_msg {
        try IMPB_Notification_msg(wire: await next { $0.type == .notification }.body)
    }

    func message() async throws -> IMPB_Group_msg {
        let base = try IMPB_base_msg(wire: await next { $0.type == .message }.body)
        guard base.type == .group else { throw Unexpected("a message of type \(base.type)") }
        return try IMPB_Group_msg(wire: base.body)
    }

    private func reply(_ seq: UInt32) async throws -> IMPB_CommonRespon {
        try IMPB_CommonRespon(wire: await next { $0.type == .request && $0.seq == seq }.body)
    }

    private func ask(
        _ seq: UInt32,
        _ method: IMPB_Common.Method,
        _ message: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var common = IMPB_Common()
        common.method = method
        common.body = try message.wireBytes()
        try await client.write(.request, seq, common)
        return try await reply(seq)
    }

    func friend(
        _ seq: UInt32,
        _ cmd: IMPB_Friend_msg.Cmd,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_Friend_msg()
        message.cmd = cmd
        message.body = try body.wireBytes()
        return try await ask(seq, .friend, message)
    }

    func friends(_ seq: UInt32, page: Int32 = 0) async throws -> [IMPB_User_info] {
        let request = IMPB_get_friend_list_req.with {
            $0.page = page
            $0.limit = 10
        }
        return try IMPB_user_info_list_res(wire: await friend(seq, .friendList, request).respon).userList
    }

    func group(
        _ seq: UInt32,
        _ cmd: IMPB_Group_cmd.Cmd,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_Group_cmd()
        message.cmd = cmd
        message.body = try body.wireBytes()
        return try await ask(seq, .group, message)
    }

    func inbox(
        _ seq: UInt32,
        _ cmd: IMPB_Message_msg.Cmd,
        _ body: some SwiftProtobuf.Message
    ) async throws -> IMPB_CommonRespon {
        var message = IMPB_Message_msg()
        message.cmd = cmd
        message.body = try body.wireBytes()
        return try await ask(seq, .message, message)
    }

    func talk(
        _ seq: UInt32,
        _ text: String,
        in group: Int32,
        clientID: String = ""
    ) async throws -> IMPB_CommonRespon {
        var content = IMPB_msg_text_content()
        content.text = text
        var message = IMPB_Group_msg()
        message.groupID = group
        message.from = 4_711
        message.content = try content.wireBytes()
        message.clientID = clientID
        var base = IMPB_base_msg()
        base.type = .group
        base.body = try message.wireBytes()
        try await client.write(.message, seq, base)
        return try await reply(seq)
    }
}
