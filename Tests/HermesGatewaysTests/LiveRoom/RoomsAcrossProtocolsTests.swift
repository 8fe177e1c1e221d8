// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// One room, seen by LiveRoom viewers and by clients of the native protocol.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct RoomsAcrossProtocolsTests {
    typealias Frames = LiveRoomTestFrames

    func inLobby(_ change: (inout Hermes_V1_RoomRequest) -> Void) -> Hermes_V1_Packet.OneOf_Body {
        var request = Hermes_V1_RoomRequest()
        request.room = "lobby"
        change(&request)
        return .room(request)
    }

    @Test func `everyone sees everyone in its own protocol`() async throws {
        try await GatewayHarness.with { server in
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            let mark = Frames.raw(20)
            try await viewer.send(mark)
            #expect(try await viewer.next() == mark)

            let ann = try await server.delimited()
            let session = try await ann.register("ann")
            _ = try await ann.ask(
                2,
                inLobby {
                    $0.enter.user.level = 7
                    $0.enter.user.iconURL = "icon1"
                }
            )
            #expect(try await viewer.next() == Frames.join("ann"))

            // From the native protocol to LiveRoom.
            try await ann.write(3, inLobby { $0.text.text = "你好" })
            #expect(try await viewer.next() == Frames.text("你好"))
            try await ann.write(
                4,
                inLobby {
                    $0.gift.name = "yacht"
                    $0.gift.url = "http://example.invalid/yacht.gif"
                    $0.gift.count = 99
                }
            )
            #expect(try await viewer.next() == Frames.gift())
            try await ann.write(
                5,
                inLobby {
                    $0.custom.type = 65_535
                    $0.custom.data = Data([1, 2])
                }
            )
            #expect(try await viewer.next() == Frames.raw(65_535, [1, 2]))
            for _ in 0..<3 { #expect(try await ann.ephemeral().room.uid == session.uid) }

            // A frame from a viewer that has not sent ENTER never looks like a frame from the server.
            for type: UInt16 in [4, 5, 15] {
                try await viewer.send(Frames.raw(type, [7]))
                #expect(try await viewer.next() == Frames.raw(type, [7]))
                let custom = try await ann.ephemeral().room.custom
                #expect(custom.type == UInt32(type) && custom.data == Data([7]))
            }

            // From LiveRoom to the native protocol, first without an account, then with an account.
            try await viewer.send(try Frames.text("anonymous", from: "bob"))
            var event = try await ann.ephemeral().room
            #expect(event.text.text == "anonymous")
            #expect(event.user.name == "bob")
            #expect(event.uid == 0)
            try await viewer.send(
                try Frames.enter(token: session.token),
                try Frames.text("known", from: "bob"),
                Frames.raw(16, [9])
            )
            event = try await ann.ephemeral().room
            #expect(event.text.text == "known")
            #expect(event.uid == session.uid)
            event = try await ann.ephemeral().room
            #expect(event.custom.type == 16)
            #expect(event.custom.data == Data([9]))

            // A lost connection is announced, regardless of its protocol.
            for _ in 0..<3 { _ = try await viewer.next() }
            try await ann.wire.close()
            #expect(try await viewer.next() == Frames.leave("ann"))
        }
    }

    @Test func `history keeps to one packet`() throws {
        let ann = try #require(UserID(1))
        let bob = try #require(UserID(2))
        let messages = (1...10).map { number in
            Message(
                id: MessageID(high: 0, low: UInt64(number)),
                conversation: .direct(between: ann, and: bob),
                conversationSeq: UInt64(number),
                sender: ann,
                senderName: "ann",
                senderDevice: nil,
                clientID: nil,
                content: MessageContent(bytes: Array(repeating: 0, count: 1000)),
                sentAt: Timestamp(rawValue: 0),
                expiresAt: Timestamp(rawValue: 0)
            )
        }
        func history(_ limit: Int, _ maxBytes: Int) throws -> Hermes_V1_History {
            let page = HistoryPage(newestOf: messages, limit: limit, maxBytes: maxBytes)
            let value = NativeTranslation.value(of: .history(page), reader: bob)
            guard case .history(let history) = value else { throw Unexpected("not history") }
            return history
        }
        let some = try history(8, 5000)
        #expect(some.messages.map(\.conversationSeq) == [8, 9, 10])
        #expect(some.more)
        #expect(try history(8, 1).messages.map(\.conversationSeq) == [10])
        let all = try history(10, 1 << 20)
        #expect(all.messages.count == 10)
        #expect(!all.more)

        let entries = messages.map {
            InboxEntry(seq: $0.conversationSeq, committedAt: $0.sentAt, event: .message($0))
        }
        let page = InboxPage(entries: entries, position: InboxPosition(epoch: 1, head: 10, oldest: 1))
        #expect(page.cut(toBytes: 5000).entries.map(\.seq) == [1, 2, 3])
        #expect(page.cut(toBytes: 1).entries.map(\.seq) == [1])
    }

    @Test func `viewers are given nothing over MQTT that is longer than their frames may be`() async throws {
        try await GatewayHarness.with { server in
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            let mark = Frames.raw(20)
            try await viewer.send(mark)
            #expect(try await viewer.next() == mark)
            let publisher = try await MQTTTestClient.open(port: server.port("mqtt"))
            var connect = MQTTConnect(version: .v5, clientID: "p")
            connect.cleanStart = true
            try await publisher.send(.connect(connect))
            _ = try await publisher.next()
            func send(_ bytes: Int, _ id: UInt16, _ properties: MQTTProperties = []) async throws -> MQTTReasonCode {
                let payload = ByteBuffer(repeating: 0x78, count: bytes)
                var publish = MQTTPublish(topic: "room/lobby", payload: payload, qos: .atLeastOnce)
                publish.packetID = id
                publish.properties = properties
                try await publisher.send(.publish(publish))
                guard case .puback(let answer) = try await publisher.next() else { return .unspecifiedError }
                return answer.reason
            }
            #expect(try await send(64_001, 1) == .payloadFormatInvalid)
            #expect(try await send(1_000_000, 2) == .payloadFormatInvalid)
            #expect(try await send(64_001, 3, [.userProperty("liveroom-type", "16")]) == .payloadFormatInvalid)
            let name = String(repeating: "n", count: 60_000)
            #expect(try await send(64_000, 4, [.userProperty("name", name)]) == .success)
            let frame = try #require(try await viewer.next())
            #expect(frame.body.readableBytes < 64_200)
        }
    }
}
