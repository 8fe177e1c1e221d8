// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// The server's own publications to rooms, for callers outside of them.
package enum RoomAnnouncement {
    /// The longest text, in bytes.
    package static let maxTextBytes = 4_096

    /// A notice of the server (type 4).
    ///
    /// - Parameter userProperties: for subscribers of MQTT 5; its `seq` and `epoch` also for the native protocol.
    /// - Throws: `.tooLarge`.
    package static func notice(
        _ text: String,
        to room: RoomName,
        at now: Timestamp,
        userProperties: [(name: String, value: String)] = []
    ) throws(HermesError) -> Publication {
        var notice = LiveRoom_SystemNotice()
        notice.text = try checked(text)
        notice.serverTime = now.rawValue
        let details = userProperties.isEmpty ? nil : PublicationDetails(userProperties: userProperties)
        return try publication(notice, type: .notice, to: room, details)
    }

    /// A viewer's text under a name (type 2).
    /// - Throws: `.tooLarge`.
    package static func text(
        _ text: String,
        from name: String,
        to room: RoomName
    ) throws(HermesError) -> Publication {
        var message = LiveRoom_ChatMessage()
        message.user.level = 0
        message.user.name = name
        message.user.iconURL = ""
        message.text = try checked(text)
        return try publication(message, type: .text, to: room)
    }

    /// Checks a text for a room.
    /// - Throws: `.tooLarge`.
    package static func checked(_ text: String) throws(HermesError) -> String {
        guard text.utf8.count <= maxTextBytes else {
            throw HermesError(.tooLarge, "a room text has at most \(maxTextBytes) bytes")
        }
        return text
    }

    private static func publication(
        _ message: some WireMessage,
        type: LiveRoomFrameType,
        to room: RoomName,
        _ details: PublicationDetails? = nil
    ) throws(HermesError) -> Publication {
        do {
            return LiveRoomTranslation.publication(
                of: try message.wireBuffer(),
                type: type,
                to: room.topic,
                sender: nil,
                details: details
            )
        } catch {
            throw HermesError(.internalError, "the text cannot be encoded", cause: error)
        }
    }
}
