// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// Creates publications to a room for callers that are not in the room.
package enum RoomAnnouncement {
    /// Creates the publication of a notice from the server.
    ///
    /// - Parameter place: the notice's place in the sequence of the room's notices; nil if the notice is not numbered.
    /// - Throws: `.tooLarge`.
    package static func notice(
        _ text: String,
        to room: RoomName,
        at now: Timestamp,
        place: TopicNumbers.Place? = nil
    ) throws(HermesError) -> Publication {
        try publication(RoomEvent(.noticed(text, at: now), in: room, place: place))
    }

    /// Creates the publication of a text. The room shows `name` as the sender of the text.
    ///
    /// - Throws: `.tooLarge`.
    package static func text(_ text: String, from name: String, to room: RoomName) throws(HermesError) -> Publication {
        try publication(RoomEvent(.said(RoomMember(name: name), text), in: room))
    }

    private static func publication(_ event: RoomEvent) throws(HermesError) -> Publication {
        try event.content.check()
        return try Publication(event)
    }
}
