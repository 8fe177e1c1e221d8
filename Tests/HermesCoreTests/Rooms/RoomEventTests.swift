// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Testing

@Suite("Room events") struct RoomEventTests {
    /// Payloads that show their event, and cannot be mistaken for those of any protocol.
    private struct Payloads: RoomPayloads {
        func payload(of content: RoomEvent.Content) throws(HermesError) -> ByteBuffer {
            switch content {
            case .joined(let member), .left(let member): ByteBuffer(string: "<\(member.name)>")
            case .said(let member, let text): ByteBuffer(string: "<\(member.name)>\(text)")
            case .gave(let member, let gift): ByteBuffer(string: "<\(member.name)>\(gift.name)")
            case .noticed(let text, _): ByteBuffer(string: "<>\(text)")
            case .kicked(let removal): ByteBuffer(string: "<>\(removal.reason)")
            case .application(_, let data): data
            }
        }

        func content(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> RoomEvent.Content? {
            if case .application(let type) = kind { return .application(type, payload) }
            let parts = String(buffer: payload).dropFirst().split(separator: ">", omittingEmptySubsequences: false)
            guard payload.readableBytesView.first == UInt8(ascii: "<"), parts.count == 2 else { return nil }
            let (member, text) = (RoomMember(name: String(parts[0])), String(parts[1]))
            return switch kind {
            case .joined: .joined(member)
            case .left: .left(member)
            case .said: .said(member, text)
            case .gave: .gave(member, RoomGift(name: text, url: "", count: 0))
            case .noticed: .noticed(text, at: Timestamp(rawValue: 5))
            case .kicked: .kicked(RoomRemoval(.forbidden, text))
            case .application(let type): .application(type, payload)
            }
        }

        func partCount(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> Int { 1 }
    }

    private static let ann = RoomMember(name: "ann")
    private static let contents: [RoomEvent.Content] = [
        .joined(ann), .left(ann), .said(ann, "hi"), .gave(ann, RoomGift(name: "rose", url: "", count: 0)),
        .noticed("closing", at: Timestamp(rawValue: 5)), .kicked(.byOperator), .application(16, ByteBuffer(bytes: [7])),
    ]

    @Test
    func `the kinds' numbers never change; those below 16 without a meaning are none`() {
        let kinds: [RoomEvent.Kind] = [.joined, .left, .said, .gave, .noticed, .kicked]
        #expect(kinds.map(\.number) == [0, 1, 2, 3, 4, 5])
        for (number, kind) in zip(0..., kinds) { #expect(RoomEvent.Kind(number: UInt16(number)) == kind) }
        for number: UInt16 in 6...15 { #expect(RoomEvent.Kind(number: number) == nil) }
        for number: UInt16 in [16, 17, .max] {
            #expect(RoomEvent.Kind(number: number) == .application(number))
            #expect(RoomEvent.Kind.application(number).number == number)
        }
        #expect(Publication.Kind.plain.number == nil && Publication.Kind.room(.gave).number == 3)
    }

    @Test
    func `a client's own type with a number of the server's is not the server's`() {
        for content in Self.contents {
            let isServers =
                switch content {
                case .noticed, .kicked: true
                case .joined, .left, .said, .gave, .application: false
                }
            #expect(content.kind.isServers == isServers && !content.kind.looksLikeServers)
        }
        for type: UInt16 in 0...16 {
            let kind = RoomEvent.Kind.application(type)
            #expect(!kind.isServers && kind.looksLikeServers == (type == 4 || type == 5))
            #expect(kind.dropClass < .control)
        }
    }

    @Test
    func `texts are dropped first, the server's own never`() {
        let classes = Self.contents.map(\.kind.dropClass)
        #expect(classes == [.presence, .presence, .text, .gift, .control, .control, .gift])
        let plain = Publication(topic: RoomName.lobby.topic, payload: ByteBuffer(), kind: .plain)
        #expect(plain.dropClass == .text)
        #expect(plain.ofKind(.room(.gave)).dropClass == .gift)
        #expect(plain.ofKind(.plain).kind == .plain)
    }

    @Test(arguments: contents)
    func `an event is read from its publication as it was`(content: RoomEvent.Content) throws {
        let place = TopicNumbers.Place(epoch: 9, seq: 3)
        let isNotice = content.kind == .noticed
        let event = RoomEvent(content, in: .lobby, sender: UserID(7), place: isNotice ? place : nil)
        let publication = try Publication(event, payloads: Payloads())
        #expect(publication.topic == RoomName.lobby.topic && publication.sender == UserID(7))
        #expect(publication.kind == .room(content.kind) && publication.dropClass == content.kind.dropClass)
        let properties = publication.details?.userProperties.map { "\($0.name)=\($0.value)" } ?? []
        #expect(properties == (isNotice ? ["epoch=9", "seq=3"] : []))
        #expect(RoomEvent(publication, payloads: Payloads()) == event)
    }

    @Test
    func `only a notice has a place, whatever properties others have`() throws {
        func place(_ kind: RoomEvent.Kind, _ properties: [(name: String, value: String)]) -> TopicNumbers.Place? {
            let details = PublicationDetails(userProperties: properties)
            let payload = ByteBuffer(string: "<ann>hi")
            let publication = Publication(kind, payload, to: RoomName.lobby.topic, sender: nil, details: details)
            return RoomEvent(publication, payloads: Payloads())?.place
        }
        #expect(place(.noticed, [("seq", "2"), ("epoch", "1")]) == TopicNumbers.Place(epoch: 1, seq: 2))
        #expect(place(.noticed, [("seq", "2")]) == TopicNumbers.Place(epoch: 0, seq: 2))
        #expect(place(.noticed, [("seq", "-2"), ("epoch", "x")]) == nil)
        #expect(place(.noticed, []) == nil)
        #expect(place(.said, [("seq", "2"), ("epoch", "1")]) == nil)
    }

    @Test
    func `a plain publication to a room is a text of the name that its publisher gives`() throws {
        func read(_ payload: ByteBuffer, _ topic: String = "room/lobby", name: String? = nil) throws -> RoomEvent? {
            let publication = Publication(
                topic: try #require(TopicName(topic)),
                payload: payload,
                kind: .plain,
                sender: UserID(7),
                details: name.map { PublicationDetails(userProperties: [("x", "y"), ("name", $0)]) }
            )
            return RoomEvent(publication, payloads: Payloads())
        }
        let hi = ByteBuffer(string: "<hi>")
        let bob = RoomEvent(.said(RoomMember(name: "bob"), "<hi>"), in: .lobby, sender: UserID(7))
        #expect(try read(hi, name: "bob") == bob)
        #expect(try read(hi)?.content == .said(RoomMember(name: "MQTT"), "<hi>"))
        #expect(try read(ByteBuffer(bytes: [0xFF])) == nil)
        for topic in ["lobby", "room/", "room/a/b", "room/ä"] { #expect(try read(hi, topic) == nil) }
    }

    @Test
    func `a payload that does not fit its kind is no event`() {
        let publication = Publication(.said, ByteBuffer(string: "?"), to: RoomName.lobby.topic, sender: nil)
        #expect(RoomEvent(publication, payloads: Payloads()) == nil)
    }

    @Test
    func `the lengths that clients may use are limited`() throws {
        func text(_ count: Int) -> String { String(repeating: "x", count: count) }
        func gift(_ name: Int, _ url: Int) -> RoomEvent.Content {
            .gave(Self.ann, RoomGift(name: text(name), url: text(url), count: .min))
        }
        func member(_ name: Int, _ url: Int) -> RoomMember { RoomMember(name: text(name), iconURL: text(url)) }
        let now = Timestamp(rawValue: 0)
        let data = ByteBuffer(repeating: 1, count: 65_536)
        let allowed: [RoomEvent.Content] = [
            .said(Self.ann, text(4_096)), .noticed(text(4_096), at: now), gift(256, 1_024), .joined(member(256, 1_024)),
            .application(16, data), .application(.max, ByteBuffer()), .kicked(.byOperator),
        ]
        for content in allowed { try content.check() }
        let tooLarge: [RoomEvent.Content] = [
            .said(Self.ann, text(4_097)), .noticed(text(4_097), at: now), gift(257, 0), gift(0, 1_025),
            .joined(member(257, 0)), .left(member(0, 1_025)), .application(16, ByteBuffer(repeating: 1, count: 65_537)),
        ]
        for content in tooLarge {
            let error = #expect(throws: HermesError.self) { try content.check() }
            #expect(error?.code == .tooLarge)
        }
        let reserved = RoomEvent.Content.application(15, ByteBuffer())
        let error = #expect(throws: HermesError.self) { try reserved.check() }
        #expect(error?.code == .invalidArgument)
    }
}
