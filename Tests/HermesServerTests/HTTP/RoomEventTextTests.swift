// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore
import Testing

@testable import HermesServer

/// The texts that people see when they watch a room.
@Suite("Room events as texts") struct RoomEventTextTests {
    private static func text(_ publication: Publication, readsRooms: Bool = true) -> String {
        var buffer = ByteBuffer()
        let now = Timestamp(rawValue: 0)
        #expect(EventText.write(.publication(publication), now: now, into: &buffer, readsRooms: readsRooms))
        return String(buffer: buffer)
    }

    private static func text(_ content: RoomEvent.Content) throws -> String {
        text(try Publication(RoomEvent(content, in: .lobby)))
    }

    @Test
    func `each event is told in words`() throws {
        let ann = RoomMember(name: "ann")
        #expect(try Self.text(.joined(ann)).contains(#""topic":"room/lobby","what":"join","name":"ann"}"#))
        #expect(try Self.text(.left(ann)).contains(#""what":"leave","name":"ann"}"#))
        #expect(try Self.text(.said(ann, "hi")).contains(#""what":"text","name":"ann","text":"hi"}"#))
        let gift = try Self.text(.gave(ann, RoomGift(name: "rose", url: "", count: 3)))
        #expect(gift.contains(#""what":"gift","name":"ann","text":"rose","count":3}"#))
        let notice = try Self.text(.noticed("closing", at: Timestamp(rawValue: 5)))
        #expect(notice.contains(#""what":"notice","text":"closing"}"#))
    }

    @Test
    func `a long text is cut`() throws {
        let text = try Self.text(.said(RoomMember(name: "ann"), String(repeating: "x", count: 5_000)))
        #expect(text.contains(String(repeating: "x", count: 4_096) + "…") && text.utf8.count < 4_300)
    }

    @Test
    func `a viewer's own frame with the number of a notice is none, and shown as its bytes, like an application's own`()
        throws
    {
        let notice = try RoomAnnouncement.notice("closing", to: .lobby, at: Timestamp(rawValue: 5))
        for type: UInt16 in [4, 16] {
            let text = Self.text(Publication(.application(type), notice.payload, to: notice.topic, sender: nil))
            #expect(!text.contains("\"what\"") && text.contains("\"liveroom_type\":\(type)"))
        }
    }

    @Test
    func `a plain text is shown as what was published, and nothing is read where that is not asked for`() throws {
        let publication = Publication(topic: RoomName.lobby.topic, payload: ByteBuffer(string: "hi"), kind: .plain)
        let plain = Self.text(publication)
        #expect(plain.contains(#""text":"hi""#) && !plain.contains("\"what\"") && !plain.contains("liveroom_type"))
        let said = try RoomAnnouncement.text("hi", from: "ann", to: .lobby)
        let raw = Self.text(said, readsRooms: false)
        #expect(!raw.contains("\"what\"") && raw.contains("\"liveroom_type\":2"))
    }
}
