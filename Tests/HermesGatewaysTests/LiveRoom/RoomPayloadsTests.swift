// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The payloads of room events in their topics.
@Suite("Payloads of room events") struct RoomPayloadsTests {
    typealias Frames = LiveRoomTestFrames

    private static let ann = RoomMember(level: 7, name: "ann", iconURL: "icon1")
    private static let yacht = RoomGift(name: "yacht", url: "http://example.invalid/yacht.gif", count: 99)

    /// The events, each with the frame that viewers get.
    private static func vectors() throws -> [(RoomEvent.Content, LiveRoomFrame)] {
        var notice = LiveRoom_SystemNotice()
        notice.text = "closing"
        notice.serverTime = 5
        var kicked = LiveRoom_Kicked()
        kicked.code = HermesError.Code.forbidden.rawValue
        kicked.reason = "go"
        return [
            (.joined(ann), try Frames.join("ann")),
            (.left(ann), try Frames.leave("ann")),
            (.said(ann, "你好"), try Frames.text("你好")),
            (.gave(ann, yacht), try Frames.gift()),
            (.noticed("closing", at: Timestamp(rawValue: 5)), try LiveRoomFrame(type: .notice, message: notice)),
            (.kicked(RoomRemoval(.forbidden, "go")), try LiveRoomFrame(type: .kicked, message: kicked)),
            (.application(65_535, ByteBuffer(bytes: [1, 2])), Frames.raw(65_535, [1, 2])),
        ]
    }

    @Test
    func `an event is the body of a frame, there and back`() throws {
        for (content, frame) in try Self.vectors() {
            let publication = try Publication(RoomEvent(content, in: .lobby))
            #expect(publication.payload == frame.body)
            #expect(RoomEvent(publication)?.content == content)
            #expect(LiveRoomTranslation.frame(of: publication) == frame.bytes)
            let parts = GatewayCatalog.roomPayloads.partCount(of: content.kind, in: frame.body)
            #expect(parts == frame.partCount)
        }
    }

    @Test
    func `a viewer's bytes are passed on as they came, with what the schema does not know`() throws {
        var text = try Frames.text("hi").body
        text.writeBytes([0xF8, 0x07, 0x01])
        let frame = Frames.raw(2, Array(text.readableBytesView))
        let publication = LiveRoomTranslation.publication(of: frame, to: RoomName.lobby.topic, sender: UserID(7))
        #expect(publication.kind == .room(.said) && publication.sender == UserID(7))
        #expect(LiveRoomTranslation.frame(of: publication) == frame.bytes)
        #expect(RoomEvent(publication)?.content == .said(Self.ann, "hi"))
    }

    @Test
    func `what does not fit its kind is no event, and an application's own always fits`() {
        let payloads = GatewayCatalog.roomPayloads
        let kinds: [RoomEvent.Kind] = [.joined, .left, .said, .gave, .noticed, .kicked]
        for bytes: [UInt8] in [[], [0x0A], [0xFF, 0xFF], [0x0A, 0x7F, 0x01]] {
            for kind in kinds { #expect(payloads.content(of: kind, in: ByteBuffer(bytes: bytes)) == nil) }
            let own = ByteBuffer(bytes: bytes)
            #expect(payloads.content(of: .application(4), in: own) == .application(4, own))
        }
    }

    @Test
    func `of a viewer's frame only the four types are the room's; all others are the application's`() {
        let kinds = (0...16).map { RoomEvent.Kind(LiveRoomFrameType(rawValue: $0)) }
        #expect(kinds.prefix(4) == [.joined, .left, .said, .gave])
        #expect(Array(kinds.dropFirst(4)) == (4...16).map { .application($0) })
    }

    @Test
    func `a notice is a text of the system for viewers that do not know notices`() throws {
        let notice = try RoomAnnouncement.notice("closing", to: .lobby, at: Timestamp(rawValue: 5))
        let text = try RoomAnnouncement.text("closing", from: "system", to: .lobby)
        #expect(LiveRoomTranslation.plainFrame(of: notice) == LiveRoomTranslation.frame(of: text))
        #expect(LiveRoomTranslation.plainFrame(of: text).readableBytes == 0)
    }

    @Test
    func `a plain text is a frame under its publisher's name; other bytes are none`() throws {
        let topic = RoomName.lobby.topic
        let details = PublicationDetails(userProperties: [("name", "bob")])
        let hi = Publication(topic: topic, payload: ByteBuffer(string: "hi"), kind: .plain, details: details)
        let said = try RoomAnnouncement.text("hi", from: "bob", to: .lobby)
        #expect(LiveRoomTranslation.frame(of: hi) == LiveRoomTranslation.frame(of: said))
        let bytes = Publication(topic: topic, payload: ByteBuffer(bytes: [0xFF]), kind: .plain)
        #expect(LiveRoomTranslation.frame(of: bytes).readableBytes == 0)
        for (count, isSafe) in [(StreamSafeText.maxRun, true), (StreamSafeText.maxRun + 1, false)] {
            let marks = ByteBuffer(string: String(repeating: "\u{301}", count: count))
            let text = Publication(topic: topic, payload: marks, kind: .plain)
            #expect((RoomEvent(text) != nil) == isSafe)
            #expect((LiveRoomTranslation.frame(of: text).readableBytes > 0) == isSafe)
        }
    }

    @Test(arguments: 0...17 as ClosedRange<UInt16>)
    func `a publication declares a client's kind, and its payload fits it`(type: UInt16) throws {
        var counted = 0
        func kind(_ payload: ByteBuffer, _ declared: String, _ topic: TopicName) -> Publication.Kind? {
            let details = PublicationDetails(userProperties: [("liveroom-type", declared)])
            let publication = Publication(topic: topic, payload: payload, kind: .plain, details: details)
            return MQTTTranslation.kind(of: publication) { counted += $0 }
        }
        let fitting = try Self.vectors().first { $0.0.kind.number == type }?.1.body ?? ByteBuffer()
        let expected: Publication.Kind? =
            switch type {
            case 0: .room(.joined)
            case 1: .room(.left)
            case 2: .room(.said)
            case 3: .room(.gave)
            case 16...: .room(.application(type))
            default: nil
            }
        #expect(kind(fitting, "\(type)", RoomName.lobby.topic) == expected)
        // Unknown fields count as parts. The bytes of an application's type are not read.
        var padded = fitting
        for _ in 0..<100 { padded.writeBytes([0xF8, 0x07, 0x01]) }
        #expect(kind(padded, "\(type)", RoomName.lobby.topic) == expected)
        #expect((counted >= 100) == (type < 4))
        let broken = kind(ByteBuffer(bytes: [0xFF]), "\(type)", RoomName.lobby.topic)
        #expect(broken == (type < 16 ? nil : expected))
        #expect(kind(fitting, "x\(type)", RoomName.lobby.topic) == nil)
        #expect(kind(fitting, "+\(type)", RoomName.lobby.topic) == nil)
        #expect(kind(fitting, "\(type)", try #require(TopicName("news"))) == .plain)
    }

    @Test(arguments: [
        [("liveroom-type", "16"), ("liveroom-type", "4")],
        [("liveroom-type", "16"), ("liveroom-type", "16")],
        [("liveroom-application-type", "4")],
        [("liveroom-type", "16"), ("liveroom-application-type", "5")],
    ])
    func `a publication to a room declares its kind once, and no kind that only the server may tell`(
        _ declared: [(String, String)]
    ) throws {
        func kind(_ topic: TopicName) -> Publication.Kind? {
            let details = PublicationDetails(userProperties: declared.map { (name: $0.0, value: $0.1) })
            return MQTTTranslation.kind(
                of: Publication(topic: topic, payload: ByteBuffer(), kind: .plain, details: details)
            )
        }
        #expect(kind(RoomName.lobby.topic) == nil)
        #expect(kind(try #require(TopicName("news"))) == .plain)
    }

    @Test
    func `a declared kind is forwarded once`() {
        let details = PublicationDetails(userProperties: [("liveroom-type", "16")])
        let event = Publication(
            topic: RoomName.lobby.topic,
            payload: ByteBuffer(),
            kind: .room(.application(16)),
            details: details
        )
        #expect(MQTTTranslation.roomType(of: event) == nil)
    }

    @Test
    func `clients of MQTT are told the kind; a viewer's own with the server's number under another name`() {
        func property(_ kind: Publication.Kind) -> MQTTProperty? {
            MQTTTranslation.roomType(of: Publication(topic: RoomName.lobby.topic, payload: ByteBuffer(), kind: kind))
        }
        #expect(property(.plain) == nil)
        #expect(property(.room(.noticed)) == .userProperty("liveroom-type", "4"))
        #expect(property(.room(.application(4))) == .userProperty("liveroom-application-type", "4"))
        #expect(property(.room(.application(6))) == .userProperty("liveroom-type", "6"))
    }
}
