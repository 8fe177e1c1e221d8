// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct IMPBGatewayTests {
    @Test func `echoes pings before login`() async throws {
        try await GatewayHarness.with { server in
            let client = try await server.impb()
            let ping = ByteBuffer(bytes: [0x81, 0, 0, 0, 9, 1, 0, 0])
            try await client.wire.send(ping)
            var echo = ByteBuffer()
            try await client.next().write(into: &echo)
            #expect(echo == ping)
        }
    }

    @Test func `registers logs in and talks`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            let login = try await ann.logIn("ann")
            #expect(login.uid == annUID)
            #expect(!login.token.isEmpty)
            let bob = try await server.impb()
            let bobUID = try await bob.register("bob").uid
            _ = try await bob.logIn("bob")

            // The device that the registration created was removed. Otherwise the server would keep every message for
            // it for a month.
            let user = try #require(UserID(annUID))
            let devices = try await server.messenger.accounts.devices(of: user)
            #expect(devices.map(\.description.id.rawValue) == ["phone"])

            var content = IMPB_msg_text_content()
            content.text = "hello"
            var message = IMPB_C2C_msg()
            message.from = 4_711
            message.to = Int32(bobUID)
            message.content = try content.wireBytes()
            message.clientID = "c1"
            message.ext = [
                .with {
                    $0.key = "colour"
                    $0.value = "red"
                }
            ]
            try await ann.send(message, seq: 30)
            let reply = try await ann.reply(30)
            #expect(reply.isSuc)
            let receipt = try IMPB_Message_receipt(wire: reply.respon)
            #expect(receipt.clientID == "c1")

            let arrived = try await bob.message()
            #expect(arrived.from == Int32(annUID))
            #expect(arrived.to == Int32(bobUID))
            #expect(arrived.fromInfo.nickName == "ann")
            #expect(arrived.text == "hello")
            #expect(arrived.messageID == receipt.messageID)
            #expect(arrived.seq == 1)
            #expect(arrived.serverTime > 0)
            #expect(arrived.ext.map(\.value) == ["red"])
        }
    }

    @Test func `refuses what is not allowed`() async throws {
        try await GatewayHarness.with { server in
            let client = try await server.impb()
            try await client.send("hello", to: 1, seq: 3)
            let stranger = try await client.reply(3)
            #expect(!stranger.isSuc)
            #expect(stranger.error.code == HermesError.Code.notAuthenticated.rawValue)

            try await client.wire.send(IMPBFrame(seq: 4, type: .request, body: ByteBuffer(bytes: [0xFF, 0xFF])))
            #expect(try await client.reply(4).error.type == .invalidParams)
            try await client.wire.send(IMPBFrame(seq: 5, type: IMPBFrameType(rawValue: 200)))
            #expect(try await client.reply(5).isSuc == false)

            _ = try await client.register("ann")
            _ = try await client.logIn("ann")
            #expect(try await client.ask(6, .friend, IMPB_Friend_msg()).error.type == .invalidParams)
            #expect(try await client.ask(7, .group, IMPB_Group_cmd()).isSuc == false)
            let unknown = try await client.ask(8, .userInfo, IMPB_User_info_request.with { $0.uid = 99 })
            #expect(unknown.error.code == HermesError.Code.notFound.rawValue)
            try await client.send("hello", to: 99, seq: 9)
            #expect(try await client.reply(9).error.type == .invalidParams)

            // A wrong magic byte causes an error, and then the end of the connection.
            try await client.wire.send(ByteBuffer(bytes: [0x82, 0, 0, 0]))
            #expect(try await client.reply(0).isSuc == false)
            #expect(try await client.wire.next() == nil)
        }
    }

    @Test func `a silent client gets the message again a speaking one does not`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let bob = try await server.impb()
            let bobUID = try await bob.register("bob").uid
            _ = try await bob.logIn("bob")
            try await ann.send("hello", to: bobUID, seq: 3)
            let first = try await bob.message()
            // The client sends nothing more, so it may never have received the message.
            try await bob.wire.close()

            let again = try await server.impb()
            _ = try await again.logIn("bob")
            #expect(try await again.message().messageID == first.messageID)
            // The client sends a packet, so it has received the message.
            try await again.ping()
            // Acknowledgements are committed together with the next commit.
            try await ann.send("note", to: annUID, seq: 5)
            #expect(try await ann.reply(5).isSuc)
            try await again.wire.close()

            let third = try await server.impb()
            _ = try await third.logIn("bob")
            try await ann.send("second", to: bobUID, seq: 4)
            #expect(try await third.message().text == "second")
        }
    }

    @Test func `a client that acknowledges itself is taken at its word`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let bob = try await server.impb()
            let bobUID = try await bob.register("bob").uid
            _ = try await bob.logIn("bob")
            #expect(try await bob.ask(3, .ack, IMPB_ack_request()).isSuc)
            for text in ["one", "two", "three"] { try await ann.send(text, to: bobUID, seq: 3) }
            for _ in 1...3 { _ = try await bob.message() }
            try await bob.ping()
            #expect(try await bob.ask(4, .ack, IMPB_ack_request.with { $0.upToSeq = 1 }).isSuc)
            try await ann.send("note", to: annUID, seq: 5)
            #expect(try await ann.reply(5).isSuc)
            try await bob.wire.close()

            let back = try await server.impb()
            let login = try await back.logIn("bob")
            #expect(login.headSeq == 3)
            #expect(try await back.message().text == "two")
            #expect(try await back.message().text == "three")

            let pulled = try await back.ask(5, .pull, IMPB_pull_request.with { $0.afterSeq = 2 })
            #expect(try IMPB_pull_response(wire: pulled.respon).headSeq == 3)
            #expect(try await back.message().text == "three")
        }
    }

    @Test func `a pull is cut to what the connection holds`() async throws {
        var settings = GatewaySettings()
        settings.limits.outboundQueueBytes = 64 << 10
        try await GatewayHarness.with(settings: settings) { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let desk = try await server.delimited()
            _ = try await desk.register("bob")
            for index in 1...10 {
                let text = String(repeating: "x", count: 10_000)
                try await desk.send(text, to: annUID, id: UInt64(index))
                #expect(try await ann.message().seq == UInt64(index))
            }
            var last: UInt64 = 0
            var counts: [UInt32] = []
            while last < 10 {
                let request = IMPB_pull_request.with {
                    $0.afterSeq = last
                    $0.limit = 1_000
                }
                let pulled = try IMPB_pull_response(wire: await ann.ask(3, .pull, request).respon)
                counts.append(pulled.count)
                for _ in 0..<pulled.count {
                    let seq = try await ann.message().seq
                    #expect(seq == last + 1)
                    last = seq
                }
            }
            #expect(counts == [3, 3, 3, 1])
        }
    }

    @Test func `read recall and history`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let bob = try await server.impb()
            let bobUID = try await bob.register("bob").uid
            _ = try await bob.logIn("bob")
            try await ann.send("hello", to: bobUID, seq: 3)
            let message = try await bob.message()
            let read = IMPB_read_request.with {
                $0.conversation.uid = annUID
                $0.upToSeq = 1
            }
            #expect(try await bob.ask(4, .read, read).isSuc)
            let mark = try await ann.notification()
            #expect(mark.type == .readMark)
            #expect(try IMPB_read_notification(wire: mark.body).uid == bobUID)

            let request = IMPB_history_request.with { $0.conversation.uid = bobUID }
            let reply = try await ann.ask(5, .history, request)
            let history = try IMPB_history_response(wire: reply.respon)
            #expect(history.messages.count == 1)

            let recall = IMPB_recall_request.with {
                $0.conversation.uid = bobUID
                $0.messageID = message.messageID
            }
            #expect(try await ann.ask(6, .recall, recall).isSuc)
            var notification = try await bob.notification()
            if notification.type == .readMark { notification = try await bob.notification() }
            #expect(notification.type == .recalled)
        }
    }

    @Test func `sets up a direct link`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let annUID = try await ann.register("ann").uid
            _ = try await ann.logIn("ann", port: 7)
            let bob = try await server.impb()
            let bobUID = try await bob.register("bob").uid

            var request = IMPB_p2pconnect_request()
            request.targetUid = bobUID
            // A stranger gets no information, not even whether the user is online.
            #expect(try await ann.ask(3, .connectRequest, request).error.code == HermesError.Code.forbidden.rawValue)
            try await server.befriend(annUID, bobUID)
            let offline = try IMPB_p2pconnect_response(wire: await ann.ask(3, .connectRequest, request).respon)
            #expect(offline.isExit)
            #expect(!offline.isOnline)

            _ = try await bob.logIn("bob", port: 8)
            let online = try IMPB_p2pconnect_response(wire: await ann.ask(4, .connectRequest, request).respon)
            #expect(online.isOnline)
            #expect(online.sponsorIpInfo.ip == "10.0.0.7")
            #expect(online.sponsorIpInfo.sockIp == "127.0.0.1")
            // Bob has not agreed yet.
            #expect(online.targetIpInfo == IMPB_Ip_info())

            let asked = try await bob.notification(.p2PReceiveConnectReq)
            let body = try IMPB_p2p_receive_connect_notification(wire: asked.body)
            #expect(body.sponsorUid == annUID)
            #expect(body.sponsorIpInfo.port == 7)
            #expect(body.targetInfo.ip == "10.0.0.8")

            var post = IMPB_p2p_post_ip_request()
            post.sponsorUid = annUID
            post.ipInfo.ip = "10.0.0.8"
            post.ipInfo.port = 4_000
            post.isReady = true
            #expect(try IMPB_p2p_post_ip_response(wire: await bob.ask(5, .postIp, post).respon).isSuc)
            let ready = try await ann.notification(.p2PConnectReady)
            let address = try IMPB_p2p_connect_ready_notification(wire: ready.body)
            #expect(address.uid == bobUID)
            // The server sees the same address for both, so they must use the private address.
            #expect(address.ip == "10.0.0.8")
            #expect(address.port == 4_000)

            func posted() async throws -> IMPB_p2p_connect_ready_notification {
                #expect(try IMPB_p2p_post_ip_response(wire: await bob.ask(6, .postIp, post).respon).isSuc)
                return try IMPB_p2p_connect_ready_notification(wire: await ann.notification(.p2PConnectReady).body)
            }
            // A STUN server has told Bob his public address. It belongs to somebody, but nothing is sent to it.
            post.ipInfo.sockIp = "9.9.9.9"
            post.ipInfo.sockPort = 5_000
            let far = try await posted()
            #expect(far.ip == "9.9.9.9" && far.port == 5_000)
            // Ann gets the address that the server observes. She gets no other text, and no address of her own device.
            post.ipInfo.sockIp = "224.0.0.1"
            for text in ["bank.example", "10.0.0.8\0", "fe80::1%en0", " 10.0.0.8", "1", "127.0.0.2", "::1"] {
                post.ipInfo.ip = text
                let observed = try await posted()
                #expect(observed.ip == "127.0.0.1" && observed.port == 5_000, "\(text)")
            }

            // A blocked account is no longer a contact. So it gets neither an address nor the presence.
            try await server.contact(.block, by: bobUID, annUID)
            #expect(try await ann.ask(6, .connectRequest, request).error.code == HermesError.Code.forbidden.rawValue)
            post.sponsorUid = bobUID
            #expect(try await ann.ask(7, .postIp, post).error.code == HermesError.Code.forbidden.rawValue)
        }
    }
}
