// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The limits of events that the server writes itself, and of publications to a room's topic. For an event of a
/// LiveRoom client, the size of its frame is the limit instead.
package enum RoomLimits {
    /// The maximum length of a text or notice, in bytes.
    package static let maxTextBytes = 4_096
    /// The maximum length of the name of a member or a gift, in bytes.
    package static let maxNameBytes = 256
    /// The maximum length of the URL of a member's or a gift's picture, in bytes.
    package static let maxURLBytes = 1_024
    /// The maximum length of the data of an application's event, in bytes.
    package static let maxApplicationBytes = 65_536

    /// The maximum length of the payload of a publication to a room's topic, in bytes. A payload of this length and a
    /// name fit into a LiveRoom frame. Viewers accept frames of at most 64 KiB.
    package static let maxPayloadBytes = 64_000

    /// Checks a publication to any topic.
    ///
    /// - Throws: `.tooLarge` if the topic belongs to a room and the payload is too long for a room.
    package static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError) {
        guard payload.readableBytes <= maxPayloadBytes || topic.room == nil else {
            throw HermesError(.tooLarge, "a publication to a room is at most 64,000 bytes long")
        }
    }

    /// Checks a text or a notice.
    ///
    /// - Throws: `.tooLarge`.
    package static func check(text: String) throws(HermesError) {
        guard text.utf8.count <= maxTextBytes else { throw HermesError(.tooLarge, "a room text is at most 4 KiB") }
    }
}
