// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct CrossProtocolTests {
    @Test func `one person on both protocols`() async throws {
        try await GatewayHarness.with { server in
            let phone = try await server.impb()
            let annUID = try await phone.register("ann").uid
            _ = try await phone.logIn("ann")
            let desk = try await server.delimited()
            _ = try await desk.authenticate("ann", device: "desk")
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid

            try await phone.send("from the phone", to: bobUID, seq: 3)
            #expect(try await bob.event().message.content.text == "from the phone")
            let own = try await desk.event().message
            #expect(own.own)
            #expect(own.conversation.uid == bobUID)

            try await desk.send("from the desk", to: bobUID, id: 4)
            #expect(try await bob.event().message.content.text == "from the desk")
            let echo = try await phone.message()
            #expect(echo.from == Int32(annUID))
            #expect(echo.to == Int32(bobUID))
            #expect(echo.text == "from the desk")

            try await bob.send("to both", to: annUID, id: 5)
            #expect(try await phone.message().text == "to both")
            #expect(try await desk.event().message.content.text == "to both")
        }
    }

    @Test func `contents keep their meaning`() async throws {
        try await GatewayHarness.with { server in
            let phone = try await server.impb()
            let annUID = try await phone.register("ann").uid
            _ = try await phone.logIn("ann")
            let desk = try await server.delimited()
            let bobUID = try await desk.register("bob").uid

            var message = IMPB_C2C_msg()
            message.to = Int32(bobUID)
            message.type = .location
            message.content = try IMPB_msg_location_content.with {
                $0.location.lat = 48.5
                $0.location.lon = 9.25
            }
            .wireBytes()
            try await phone.send(message, seq: 3)
            let location = try await desk.event().message.content.location
            #expect(location.latitude == 48.5)
            #expect(location.longitude == 9.25)

            // The content of a type without a published body stays unchanged.
            message.type = .video
            message.content = .init([1, 2, 3, 250])
            message.to = Int32(annUID)
            let tablet = try await server.impb()
            _ = try await tablet.logIn("ann", device: "tablet")
            // The tablet's cursor starts before the oldest entry.
            #expect(try await tablet.message().type == .location)
            try await phone.send(message, seq: 4)
            let video = try await tablet.message()
            #expect(video.type == .video)
            #expect(video.content == .init([1, 2, 3, 250]))

            var send = Hermes_V1_Send()
            send.to.uid = annUID
            send.content.image.url = "https://example.org/a.png"
            send.content.attributes = ["caption": "us"]
            try await desk.write(5, .send(send))
            let image = try await tablet.message()
            #expect(image.type == .image)
            #expect(try IMPB_msg_img_content(wire: image.content).imgURL == "https://example.org/a.png")
            #expect(image.ext.map(\.key) == ["caption"])
        }
    }

    @Test
    func `what IMPB cannot carry arrives whole elsewhere, and over IMPB something stands in for it`() async throws {
        try await GatewayHarness.with { server in
            let desk = try await server.delimited()
            let annUID = try await desk.register("ann", device: "desk").uid
            let tablet = try await server.impb()
            _ = try await tablet.logIn("ann", device: "tablet")
            let bob = try await server.delimited()
            _ = try await bob.register("bob")

            let text = String(repeating: "é", count: 32_760)
            try await bob.send(text, to: annUID, id: 6)
            let id = try await bob.receipt(6).messageID
            #expect(try await desk.event().message.content.text == text)
            let stoodIn = try await tablet.message()
            #expect(stoodIn.messageID == id)
            #expect(
                stoodIn.text == "[text of 65524 bytes, too large for this client; another of your clients can show it]"
            )
            #expect(stoodIn.ext.map(\.key) == ["stand_in", "stand_in_bytes"])
            #expect(stoodIn.ext.map(\.value) == ["text", "65524"])

            var send = Hermes_V1_Send()
            send.to.uid = annUID
            send.content.custom.type = "drawing"
            send.content.custom.data = Data(repeating: 7, count: 65_490)
            try await bob.write(7, .send(send))
            #expect(try await desk.event().message.content == send.content)
            let drawing = try await tablet.message()
            #expect(drawing.ext.map(\.value) == ["custom", "65507"])

            // The longest text that fits is delivered completely.
            let fitting = String(repeating: "x", count: 65_000)
            try await bob.send(fitting, to: annUID, id: 8)
            #expect(try await tablet.message().text == fitting)
        }
    }

    @Test func `types of the server's own are refused and what is stored hurts nobody`() async throws {
        try await GatewayHarness.with { server in
            let phone = try await server.impb()
            let annUID = try await phone.register("ann").uid
            _ = try await phone.logIn("ann")
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            var send = Hermes_V1_Send()
            send.to.uid = annUID
            send.content.custom.type = "impb/9223372032559808512"
            send.content.custom.data = Data([1])
            let refused = try await bob.ask(3, .send(send))
            #expect(refused.error.code == HermesError.Code.invalidArgument.rawValue)

            // A message like this may have been stored by an earlier version of the server.
            let ann = try #require(UserID(annUID))
            let sender = Principal(
                user: try #require(UserID(bobUID)),
                nickName: try NickName("bob"),
                device: try #require(DeviceID("one"))
            )
            let draft = MessageDraft(
                conversation: .direct(between: ann, and: sender.user),
                clientID: nil,
                content: MessageContent(bytes: Array(try send.content.serializedData()))
            )
            server.messenger.messages.send(draft, from: sender) { _ in }
            let arrived = try await phone.message()
            #expect(arrived.type == .custom)
            #expect(try IMPB_msg_cumstom_content(wire: arrived.content).info.key == "impb/9223372032559808512")
            try await phone.ping()
        }
    }
}
