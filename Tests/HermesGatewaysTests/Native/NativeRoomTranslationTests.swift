// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

@Suite("Room events in the native protocol") struct NativeRoomTranslationTests {
    private static let ann = RoomMember(level: 7, name: "ann", iconURL: "icon1")

    private static func event(
        _ content: RoomEvent.Content,
        sender: UserID? = nil,
        place: TopicNumbers.Place? = nil
    ) -> Hermes_V1_RoomEvent {
        let event = RoomEvent(content, in: .lobby, sender: sender, place: place)
        return NativeRoomTranslation.packet(for: event).ephemeral.room
    }

    @Test
    func `what members do is told with the member and its account`() throws {
        let id = try #require(UserID(7))
        let gift = RoomGift(name: "rose", url: "u", count: 3)
        let ann = Self.ann
        for content: RoomEvent.Content in [.joined(ann), .left(ann), .said(ann, "hi"), .gave(ann, gift)] {
            let event = Self.event(content, sender: id)
            #expect(event.room == "lobby" && event.uid == 7)
            #expect(event.user.level == 7 && event.user.name == "ann" && event.user.iconURL == "icon1")
            switch (content, event.event) {
            case (.joined, .joined), (.left, .left): break
            case (.said, .text(let text)): #expect(text.text == "hi")
            case (.gave, .gift(let gift)): #expect(gift.name == "rose" && gift.url == "u" && gift.count == 3)
            default: Issue.record("\(content) became \(event)")
            }
        }
    }

    @Test
    func `a notice has its number, a removal its reason, and an application's own its bytes`() throws {
        let place = TopicNumbers.Place(epoch: 9, seq: 3)
        let notice = Self.event(.noticed("closing", at: Timestamp(rawValue: 5)), place: place)
        #expect(notice.notice.text == "closing" && notice.topicSeq == 3 && notice.topicEpoch == 9)
        #expect(!notice.hasUser && notice.uid == 0)
        let unnumbered = Self.event(.noticed("closing", at: Timestamp(rawValue: 5)))
        #expect(unnumbered.topicSeq == 0 && unnumbered.topicEpoch == 0)
        #expect(Self.event(.kicked(.byOperator)).kicked.reason == "an operator decided so")
        let own = Self.event(.application(4, ByteBuffer(bytes: [1, 2])))
        #expect(own.custom.type == 4 && own.custom.data == Data([1, 2]) && !own.hasUser)
    }

    @Test
    func `a request is what the member does, within the limits; others are refused`() throws {
        func content(_ change: (inout Hermes_V1_RoomRequest) -> Void) throws(HermesError) -> RoomEvent.Content {
            var request = Hermes_V1_RoomRequest()
            change(&request)
            return try RoomEvent.Content(request.request, by: Self.ann)
        }
        func code(_ change: (inout Hermes_V1_RoomRequest) -> Void) -> HermesError.Code? {
            do throws(HermesError) {
                _ = try content(change)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try content { $0.text.text = "hi" } == .said(Self.ann, "hi"))
        let gift = try content {
            $0.gift.name = "rose"
            $0.gift.url = "u"
            $0.gift.count = 3
        }
        #expect(gift == .gave(Self.ann, RoomGift(name: "rose", url: "u", count: 3)))
        let own = try content {
            $0.custom.type = 65_535
            $0.custom.data = Data([1])
        }
        #expect(own == .application(65_535, ByteBuffer(bytes: [1])))
        #expect(code { $0.text.text = String(repeating: "x", count: 4_097) } == .tooLarge)
        #expect(code { $0.gift.url = String(repeating: "x", count: 1_025) } == .tooLarge)
        for type: UInt32 in [0, 15, 65_536, .max] { #expect(code { $0.custom.type = type } == .invalidArgument) }
        let long = Data(count: 65_537)
        let tooLong = code {
            $0.custom.type = 16
            $0.custom.data = long
        }
        #expect(tooLong == .tooLarge)
        #expect(code { _ in } == .unsupported)
    }

    @Test
    func `a member without a name of its choice has its account's`() {
        var user = Hermes_V1_RoomUser()
        user.level = 2
        user.iconURL = "i"
        let account = RoomMember(user, orNamed: "ann")
        #expect(account == RoomMember(level: 2, name: "ann", iconURL: "i"))
        user.name = "Queen"
        #expect(RoomMember(user, orNamed: "ann").name == "Queen")
    }
}
