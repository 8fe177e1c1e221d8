// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// Publications to rooms by callers outside of them.
package enum RoomAnnouncement {
    /// A notice of the server.
    ///
    /// - Parameter place: its place in the sequence of the room's notices; nil: it has none.
    /// - Throws: `.tooLarge`.
    package static func notice(
        _ text: String,
        to room: RoomName,
        at now: Timestamp,
        place: TopicNumbers.Place? = nil
    ) throws(HermesError) -> Publication {
        try publication(RoomEvent(.noticed(text, at: now), in: room, place: place))
    }

    /// A text under a name.
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
