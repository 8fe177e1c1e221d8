// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

@Suite("Pushes on the wire")
struct PushTranslationTests {
    private func reader(_ device: String = "phone") throws -> Principal {
        Principal(
            user: try #require(UserID(2)),
            nickName: try NickName("bob"),
            device: try #require(DeviceID(device))
        )
    }

    private func push(
        title: String = "Sale",
        body: String = "all\nshoes",
        data: String = #"{"url":"https://x","n":3,"on":true,"id":"forged","deep":{"a":1},"a:b":"c"}"#,
        message: TypedMessage? = nil,
        device: String? = nil
    ) throws -> Push {
        Push(
            id: MessageID(high: 1_700_000_000_000 << 16, low: 2),
            content: PushContent(title: title, body: body, dataJSON: data, collapseKey: "sale", message: message),
            priority: .high,
            expiresAt: Timestamp(rawValue: 1_800_000_000_000),
            device: device.flatMap { DeviceID($0) }
        )
    }

    private func entry(_ push: Push) -> InboxEntry {
        InboxEntry(seq: 9, committedAt: Timestamp(rawValue: 7), event: .push(push))
    }

    @Test
    func `Delimited: every field; for another device the seq alone`() throws {
        let push = try push()
        let event = Hermes_V1_Event(entry(push), reader: try reader())
        #expect(event.seq == 9)
        #expect(event.push.id == push.id.description)
        #expect(event.push.title == "Sale")
        #expect(event.push.body == "all\nshoes")
        #expect(event.push.dataJson == push.content.dataJSON)
        #expect(event.push.collapseKey == "sale")
        #expect(event.push.priority == .high)
        #expect(event.push.expiresAtMs == 1_800_000_000_000)

        let other = Hermes_V1_Event(entry(try self.push(device: "tablet")), reader: try reader())
        #expect(other.seq == 9)
        #expect(other.event == nil)
    }

    @Test
    func `QSIOP: the fields and what stands in the object itself, without names of its own`() throws {
        let pushed = try #require(QSIOPTranslation.push(for: entry(try push()), reader: reader()))
        let properties = try pushed.frame.properties()
        #expect(properties["id"] == pushed.id)
        #expect(properties["title"] == "Sale")
        #expect(properties["body"] == "all shoes")
        #expect(properties["url"] == "https://x")
        #expect(properties["n"] == "3")
        #expect(properties["on"] == "true")
        #expect(properties["deep"] == nil)
        #expect(properties["seq"] == "9")
        #expect(QSIOPTranslation.push(for: entry(try push(device: "tablet")), reader: try reader()) == nil)
    }

    @Test
    func `the application's own message: its bytes over Delimited, in JSON and over IMPB, base64 over QSIOP`() throws {
        let push = try push(message: TypedMessage(type: "shop.Order", bytes: [0, 0xFF, 7]))
        let event = Hermes_V1_Event(entry(push), reader: try reader())
        #expect(event.push.messageType == "shop.Order")
        #expect([UInt8](event.push.messageBytes) == [0, 0xFF, 7])
        #expect(try event.jsonString().contains(#""messageBytes":"AP8H""#))
        guard case .notification(let told)? = IMPBTranslation.delivery(entry(push), reader: try reader()) else {
            Issue.record("no notification")
            return
        }
        let notification = try IMPB_push_notification(wire: [UInt8](told.body))
        #expect(notification.messageType == "shop.Order")
        #expect([UInt8](notification.messageBytes) == [0, 0xFF, 7])
        let properties = try #require(QSIOPTranslation.push(for: entry(push), reader: reader())).frame.properties()
        #expect(properties["message-type"] == "shop.Order")
        #expect(properties["message"] == "AP8H")
        // Data that does not fit together with the message is left out.
        #expect(properties["url"] == "https://x")
    }

    @Test
    func `the largest push of all fits into frames of QSIOP and IMPB`() throws {
        let type = String(repeating: "t", count: TypedMessage.maxTypeBytes)
        let largest = try push(
            title: String(repeating: "𝄞", count: PushContent.maxTitleCharacters),
            body: String(repeating: "𝄞", count: PushContent.maxBodyCharacters),
            data: #"{"a":"\#(String(repeating: "x", count: PushContent.maxDataBytes - 8))"}"#,
            message: TypedMessage(type: type, bytes: Array(repeating: 7, count: TypedMessage.maxBytes))
        )
        try largest.content.check()
        var buffer = ByteBuffer()
        try #require(QSIOPTranslation.push(for: entry(largest), reader: reader())).frame.write(into: &buffer)
        guard case .notification(let told)? = IMPBTranslation.delivery(entry(largest), reader: try reader()) else {
            Issue.record("no notification")
            return
        }
        #expect(told.body.count < IMPBFrame.maxBodyBytes - 64)
    }

    @Test
    func `QSIOP: the largest push fits into a frame`() throws {
        let largest = try push(
            title: String(repeating: "𝄞", count: PushContent.maxTitleCharacters),
            body: String(repeating: "𝄞", count: PushContent.maxBodyCharacters),
            data: #"{"a":"\#(String(repeating: "x", count: PushContent.maxDataBytes - 8))"}"#
        )
        let pushed = try #require(QSIOPTranslation.push(for: entry(largest), reader: reader()))
        var buffer = ByteBuffer()
        try pushed.frame.write(into: &buffer)
        #expect(try pushed.frame.properties()["a"]?.utf8.count == PushContent.maxDataBytes - 8)
    }

    @Test
    func `IMPB: a notification; nothing for another device`() throws {
        guard case .notification(let notification)? = IMPBTranslation.delivery(entry(try push()), reader: try reader())
        else {
            Issue.record("no notification")
            return
        }
        #expect(notification.type == .push)
        #expect(notification.seq == 9)
        #expect(try IMPB_push_notification(wire: [UInt8](notification.body)).title == "Sale")
        #expect(IMPBTranslation.delivery(entry(try push(device: "tablet")), reader: try reader()) == nil)
    }

    @Test(arguments: [false, true])
    func `a topic's payload names the topic and its sequence`(isJSON: Bool) throws {
        let topic = try #require(TopicName("news/de"))
        let payload = try TopicPushTranslation.payload(
            of: try push(),
            expires: false,
            topic: topic,
            seq: 4,
            epoch: 11,
            isJSON: isJSON
        )
        let message =
            isJSON
            ? try Hermes_V1_Push(jsonString: String(buffer: payload))
            : try Hermes_V1_Push(wire: [UInt8](payload.readableBytesView))
        #expect(message.topic == "news/de")
        #expect(message.topicSeq == 4)
        #expect(message.topicEpoch == 11)
        #expect(message.expiresAtMs == 0)
    }
}
