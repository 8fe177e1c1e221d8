// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

@Suite struct QSIOPPushTests {
    let ann: UserID
    let bob: Principal
    let phone: DeviceID

    init() throws {
        ann = try #require(UserID(1))
        phone = try #require(DeviceID("phone"))
        bob = Principal(
            user: try #require(UserID(2)),
            nickName: try NickName("bob"),
            device: try #require(DeviceID("qsiop"))
        )
    }

    func entry(
        _ content: Hermes_V1_Content,
        from sender: UserID? = nil,
        name: String = "ann",
        device: DeviceID? = nil,
        isRecalled: Bool = false
    ) throws -> InboxEntry {
        let message = Message(
            id: MessageID(high: 1, low: 2),
            conversation: .direct(between: ann, and: bob.user),
            conversationSeq: 3,
            sender: sender ?? ann,
            senderName: name,
            senderDevice: device ?? phone,
            clientID: nil,
            content: MessageContent(bytes: try content.wireBytes()),
            sentAt: Timestamp(rawValue: 1_700_000_000_000),
            expiresAt: Timestamp(rawValue: .max),
            isRecalled: isRecalled
        )
        return InboxEntry(seq: 9, committedAt: message.sentAt, event: .message(message))
    }

    func text(_ text: String) -> Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.text = text
        return content
    }

    @Test func `a message is pushed with all its keys`() throws {
        let push = try #require(QSIOPTranslation.push(for: entry(text("hi: there")), reader: bob))
        let properties = try push.frame.properties()
        #expect(push.frame.operation == .push)
        #expect(push.id == MessageID(high: 1, low: 2).description)
        #expect(properties["id"] == push.id)
        #expect(properties["title"] == "ann")
        #expect(properties["body"] == "hi: there")
        #expect(properties["seq"] == "9")
        #expect(properties["from"] == "1")
        #expect(properties["conversation"] == "direct/1")
        #expect(properties["time"] == "1700000000000")
        #expect(properties["own"] == nil)
        #expect(properties["truncated"] == nil)
    }

    @Test func `ends of lines and of strings cannot forge properties`() throws {
        let push = try #require(
            QSIOPTranslation.push(for: entry(text("a\nid:forged\r\nb\0c"), name: "x\nfrom:9"), reader: bob)
        )
        let properties = try push.frame.properties()
        #expect(properties["id"] == push.id)
        #expect(properties["from"] == "1")
        #expect(properties["body"] == "a id:forged  b c")
        #expect(properties.pairs.count == 7)
    }

    @Test(arguments: ["x", "é", "你", "😀"])
    func `what is too long is cut at a character`(character: String) throws {
        let long = String(repeating: character, count: 65_600)
        let push = try #require(QSIOPTranslation.push(for: entry(text(long)), reader: bob))
        #expect(push.frame.body.readableBytes <= 65_535)
        #expect(push.frame.body.readableBytes > 65_535 - 8)
        let properties = try push.frame.properties()
        #expect(properties["truncated"] == "1")
        #expect(properties["stand_in"] == "text")
        let whole: [UInt8] = try text(long).wireBytes()
        #expect(properties["stand_in_bytes"] == String(whole.count))
        let body = try #require(properties["body"])
        #expect(long.hasPrefix(body))
        #expect(body.utf8.count % character.utf8.count == 0)
        var bytes = ByteBuffer()
        try push.frame.write(into: &bytes)
    }

    @Test func `what has no text is named`() throws {
        var content = Hermes_V1_Content()
        content.custom.type = "drawing"
        content.custom.data = Data([0xFF, 0xFE])
        let push = try #require(QSIOPTranslation.push(for: entry(content), reader: bob))
        let properties = try push.frame.properties()
        #expect(properties["body"] == "[drawing]")
        #expect(properties["truncated"] == "1")
        #expect(properties["stand_in"] == "custom")
        // The size is the size of the content.
        let whole: [UInt8] = try content.wireBytes()
        #expect(properties["stand_in_bytes"] == String(whole.count))
    }

    @Test func `data that does not fit is said`() throws {
        let small = PushContent(title: "t", dataJSON: #"{"a":1,"b":"c"}"#)
        let nested = PushContent(title: "t", dataJSON: #"{"a":1,"b":{"c":2}}"#)
        let reserved = PushContent(title: "t", dataJSON: #"{"seq":1}"#)
        let large = PushContent(title: "t", dataJSON: #"{"a":"\#(String(repeating: "x", count: 70_000))","b":2}"#)
        let message = PushContent(title: "t", dataJSON: #"{"from":1,"code":0,"group":2}"#)
        let told: [(PushContent, String?)] = [
            (small, nil), (nested, "1"), (reserved, "1"), (message, "1"), (large, "1"),
        ]
        for (content, truncated) in told {
            let push = Push(id: MessageID(high: 1, low: 2), content: content, expiresAt: Timestamp(rawValue: .max))
            let entry = InboxEntry(seq: 1, committedAt: Timestamp(rawValue: 0), event: .push(push))
            let properties = try #require(QSIOPTranslation.push(for: entry, reader: bob)).frame.properties()
            #expect(properties["truncated"] == truncated)
            #expect(properties["from"] == nil && properties["code"] == nil && properties["group"] == nil)
        }
    }

    /// Returns a back end's push in the form in which a device gets it.
    private func properties(of content: PushContent) throws -> (frame: QSIOPFrame, properties: QSIOPProperties) {
        let push = Push(id: MessageID(high: 1, low: 2), content: content, expiresAt: Timestamp(rawValue: .max))
        let entry = InboxEntry(seq: 1, committedAt: Timestamp(rawValue: 0), event: .push(push))
        let frame = try #require(QSIOPTranslation.push(for: entry, reader: bob)).frame
        var bytes = ByteBuffer()
        try frame.write(into: &bytes)
        return (frame, try frame.properties())
    }

    @Test(arguments: ["x", "é", "😀"])
    func `the body of a push fills a frame to the last byte, and is cut beyond`(character: String) throws {
        let empty = try properties(of: PushContent(title: "t"))
        let room = QSIOPFrame.maxBodyBytes - empty.frame.body.readableBytes
        // A new push has a shorter body, but a stored push may have a body of this length.
        let fill = String(repeating: "y", count: room % character.utf8.count)
        let body = fill + String(repeating: character, count: room / character.utf8.count)
        let whole = try properties(of: PushContent(title: "t", body: body))
        #expect(whole.frame.body.readableBytes == QSIOPFrame.maxBodyBytes)
        #expect(whole.properties["body"] == body)
        #expect(whole.properties["truncated"] == nil)
        for longer in [body + "z", body + String(repeating: character, count: 70_000)] {
            let cut = try properties(of: PushContent(title: "t", body: longer))
            #expect(cut.frame.body.readableBytes <= QSIOPFrame.maxBodyBytes)
            #expect(cut.frame.body.readableBytes > QSIOPFrame.maxBodyBytes - character.utf8.count - 1)
            #expect(cut.properties["truncated"] == "1")
            let text = try #require(cut.properties["body"])
            #expect(longer.hasPrefix(text))
        }
    }

    @Test func `the largest push that is accepted fits with its body and its message`() throws {
        let bytes = [UInt8](repeating: 7, count: TypedMessage.maxBytes)
        let type = String(repeating: "t", count: TypedMessage.maxTypeBytes)
        let data = String(repeating: "d", count: PushContent.maxDataBytes - 8)
        let content = PushContent(
            title: String(repeating: "😀", count: PushContent.maxTitleCharacters),
            body: String(repeating: "😀", count: PushContent.maxBodyCharacters),
            dataJSON: #"{"a":"\#(data)"}"#,
            collapseKey: String(repeating: "c", count: PushContent.maxCollapseKeyBytes),
            message: TypedMessage(type: type, bytes: bytes)
        )
        try content.check()
        let found = try properties(of: content).properties
        #expect(found["body"] == content.body)
        #expect(found["title"] == content.title)
        #expect(found["message"] == Data(bytes).base64EncodedString())
        #expect(found["a"] == data)
        #expect(found["truncated"] == nil)
        // If the content is longer than a new push may be, the message is left out to make room for the body.
        var larger = content
        larger.message = TypedMessage(type: type, bytes: [UInt8](repeating: 7, count: 65_536))
        let without = try properties(of: larger).properties
        #expect(without["message"] == nil && without["message-type"] == nil)
        #expect(without["body"] == content.body)
        #expect(without["truncated"] == "1")
    }

    @Test func `every protocol names the same kind and size for what it cannot carry whole`() throws {
        let content = text(String(repeating: "x", count: 70_000))
        let whole: [UInt8] = try content.wireBytes()
        let bytes = whole.count
        let entry = try entry(content)
        guard case .message(let message) = entry.event else {
            Issue.record("\(entry)")
            return
        }
        let impb = try IMPB_C2C_msg(wire: [UInt8](IMPBTranslation.base(message, seq: 9, reader: bob).body))
        let pairs = Dictionary(uniqueKeysWithValues: impb.ext.map { ($0.key, $0.value) })
        let qsiop = try #require(QSIOPTranslation.push(for: entry, reader: bob)).frame.properties()
        for (kind, size) in [
            (pairs["stand_in"], pairs["stand_in_bytes"]), (qsiop["stand_in"], qsiop["stand_in_bytes"]),
        ] {
            #expect(kind == "text")
            #expect(size == String(bytes))
        }
        var packet = Hermes_V1_Packet()
        packet.event = Hermes_V1_Event(entry, reader: bob)
        let oversized = try #require(MQTTInbox.standIns(for: packet, bytes: 70_100).first).event.oversized
        #expect(oversized.kind == "message" && oversized.packetBytes == 70_100)
        #expect(oversized.contentKind == "text" && oversized.contentBytes == UInt64(bytes))
    }

    @Test func `one is not told what one said on this device`() throws {
        let own = try entry(text("hi"), from: bob.user, device: bob.device)
        #expect(QSIOPTranslation.push(for: own, reader: bob) == nil)
        let other = try #require(QSIOPTranslation.push(for: entry(text("hi"), from: bob.user), reader: bob))
        #expect(try other.frame.properties()["own"] == "1")
    }

    @Test func `only messages are pushed`() throws {
        #expect(QSIOPTranslation.push(for: try entry(text(""), isRecalled: true), reader: bob) == nil)
        let conversation = ConversationID.direct(between: ann, and: bob.user)
        let events: [InboxEvent] = [
            .readMark(ReadMark(conversation, by: ann, upTo: 1)),
            .recalled(RecalledMessage(MessageID(high: 1, low: 2), in: conversation, conversationSeq: 1, by: ann)),
            .expired(through: 5),
        ]
        for event in events {
            let entry = InboxEntry(seq: 1, committedAt: Timestamp(rawValue: 0), event: event)
            #expect(QSIOPTranslation.push(for: entry, reader: bob) == nil)
        }
    }

    @Test
    func `a kind without a form of its own is pushed as what sleeping devices show`() throws {
        var entry = try entry(text("hi"))
        entry = InboxEntry(seq: 7, committedAt: Timestamp(rawValue: 8), event: entry.event)
        let pushed = QSIOPTranslation.push(EventAlert(title: "Ann", body: "pinned a message"), for: entry)
        #expect(pushed.id == "7")
        let properties = try pushed.frame.properties()
        #expect(properties["title"] == "Ann")
        #expect(properties["body"] == "pinned a message")
        #expect(properties["seq"] == "7" && properties["time"] == "8" && properties["truncated"] == nil)
        let long = EventAlert(id: MessageID(high: 1, low: 2), title: "", body: String(repeating: "ä", count: 70_000))
        let cut = QSIOPTranslation.push(long, for: entry)
        #expect(cut.id == MessageID(high: 1, low: 2).description)
        #expect(try cut.frame.properties()["truncated"] == "1")
        var frame = ByteBuffer()
        try cut.frame.write(into: &frame)
    }

    @Test func `every content has a text`() throws {
        var image = Hermes_V1_Content()
        image.image.url = "http://a/b.png"
        var location = Hermes_V1_Content()
        location.location.latitude = 1.5
        location.location.longitude = -2
        location.location.label = "here"
        var custom = Hermes_V1_Content()
        custom.custom.type = "order"
        custom.custom.data = Data([0x61, 0x62])
        let expected: [(Hermes_V1_Content, String)] = [
            (text("hi"), "hi"),
            (image, "[image] http://a/b.png"),
            (location, "[location] here 1.5,-2.0"),
            (custom, "[order] ab"),
            (Hermes_V1_Content(), "[unsupported]"),
        ]
        for (content, plain) in expected {
            #expect(QSIOPTranslation.plainText(MessageContent(bytes: try content.wireBytes())) == plain)
        }
        #expect(QSIOPTranslation.plainText(MessageContent(bytes: [0xFF])) == "[unreadable]")
    }
}
