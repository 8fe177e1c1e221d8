// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The limits of events that the server writes itself, and of publications to a room's topic. An event of a LiveRoom
/// client is limited by the size of its frame instead.
package enum RoomLimits {
    /// The longest text or notice, in bytes.
    package static let maxTextBytes = 4_096
    /// The longest name of a member or a gift, in bytes.
    package static let maxNameBytes = 256
    /// The longest URL of a member's or a gift's picture, in bytes.
    package static let maxURLBytes = 1_024
    /// The longest data of an application's own event, in bytes.
    package static let maxApplicationBytes = 65_536

    /// The longest payload of a publication to a room's topic, in bytes. Together with a name, it still fits into a
    /// LiveRoom frame, of which viewers accept 64 KiB.
    package static let maxPayloadBytes = 64_000

    /// Checks a publication to any topic.
    ///
    /// - Throws: `.tooLarge` if the topic is a room's and the payload is too long for it.
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
