// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The longest parts of events that the server writes itself, and the longest publication to a room's topic. An event
/// from LiveRoom is limited by its frame.
package enum RoomLimits {
    /// A text or a notice, in bytes.
    package static let maxTextBytes = 4_096
    /// The name of a member or a gift, in bytes.
    package static let maxNameBytes = 256
    /// The URL of a member's or a gift's picture, in bytes.
    package static let maxURLBytes = 1_024
    /// The data of an application's own event, in bytes.
    package static let maxApplicationBytes = 65_536

    /// The payload of a publication to a room's topic, in bytes. With a name it still fits into a frame of LiveRoom,
    /// whose viewers accept 64 KiB.
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

extension RoomMember {
    /// Checks the lengths.
    ///
    /// - Throws: `.tooLarge`.
    package func check() throws(HermesError) {
        guard name.utf8.count <= RoomLimits.maxNameBytes, iconURL.utf8.count <= RoomLimits.maxURLBytes else {
            throw HermesError(.tooLarge, "user.name is at most 256 bytes, user.icon_url 1,024")
        }
    }
}

extension RoomEvent.Content {
    /// Checks an event that a client asks the server to publish.
    ///
    /// - Throws: `.tooLarge`; `.invalidArgument` if an application's own event has a type that is not its own, or too
    ///   many bytes.
    package func check() throws(HermesError) {
        switch self {
        case .joined(let member), .left(let member):
            try member.check()
        case .said(_, let text), .noticed(let text, _):
            try RoomLimits.check(text: text)
        case .gave(_, let gift):
            guard gift.name.utf8.count <= RoomLimits.maxNameBytes, gift.url.utf8.count <= RoomLimits.maxURLBytes else {
                throw HermesError(.tooLarge, "a gift's name is at most 256 bytes, its url 1,024")
            }
        case .application(let type, let data):
            guard type >= RoomEvent.Kind.firstApplicationType, data.readableBytes <= RoomLimits.maxApplicationBytes
            else { throw Self.badApplicationEvent }
        case .kicked:
            break
        }
    }

    /// The error for an application's own event that cannot be published.
    package static var badApplicationEvent: HermesError {
        HermesError(.invalidArgument, "custom.type is 16 to 65,535, its data at most 64 KiB")
    }
}
