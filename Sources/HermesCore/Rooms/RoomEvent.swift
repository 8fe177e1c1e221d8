// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Something that happened in a room, in no protocol's words.
///
/// Rooms are live: an event is published to the room's topic (``TopicName/init(room:)``), reaches those who are there,
/// and is forgotten. Each gateway writes events in its own protocol, once per encoding and publication, and turns its
/// clients' frames into events. So no gateway has to know another's frames. A publication carries an event as its kind
/// and a payload (``RoomPayloads``); the bytes of a publisher whose protocol has that form are passed on unchanged, and
/// nothing is parsed for subscribers of the same form.
package struct RoomEvent: Hashable, Sendable {
    /// The content of an event.
    package enum Content: Hashable, Sendable {
        case joined(RoomMember)
        case left(RoomMember)
        case said(RoomMember, String)
        case gave(RoomMember, RoomGift)
        /// The server tells the room something.
        case noticed(String, at: Timestamp)
        /// The server removed the client that this is sent to.
        case kicked(RoomRemoval)
        /// The application's own, with its type; the server does not look into it.
        case application(UInt16, ByteBuffer)
    }

    package let room: RoomName
    package let content: Content
    /// The account that caused it; nil for the server and for clients without an account.
    package let sender: UserID?
    /// A notice's place in the sequence of the room's notices; nil if they are not numbered, and for other events.
    package let place: TopicNumbers.Place?

    package init(_ content: Content, in room: RoomName, sender: UserID? = nil, place: TopicNumbers.Place? = nil) {
        self.room = room
        self.content = content
        self.sender = sender
        self.place = place
    }
}

/// Somebody in a room, as the others see it: a name and a picture of its own choice, whether or not it has an account.
package struct RoomMember: Hashable, Sendable {
    /// As the application counts it.
    package let level: Int32
    package let name: String
    /// Empty for none.
    package let iconURL: String

    package init(level: Int32 = 0, name: String, iconURL: String = "") {
        self.level = level
        self.name = name
        self.iconURL = iconURL
    }
}

/// A gift to everybody in a room.
package struct RoomGift: Hashable, Sendable {
    package let name: String
    /// The URL of its picture; empty for none.
    package let url: String
    package let count: Int32

    package init(name: String, url: String, count: Int32) {
        self.name = name
        self.url = url
        self.count = count
    }
}
