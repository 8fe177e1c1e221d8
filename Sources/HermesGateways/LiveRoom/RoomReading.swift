// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// What a publication to a room says, for people who watch it.
package struct RoomReading: Sendable, Hashable {
    package enum What: String, Sendable {
        case text
        case notice
        case gift
        case join
        case leave
    }

    /// The longest part of a text or name, in bytes.
    private static let maxBytes = 4_096

    package let what: What
    package private(set) var name: String?
    package private(set) var text: String?
    /// Of gifts.
    package private(set) var count: Int?

    /// - Returns: nil for what is not a frame of the room's protocol, or has a type of an application's own.
    package init?(_ publication: Publication) {
        let body = publication.payload
        switch LiveRoomFrameType(rawValue: publication.kind) {
        case .text:
            guard let message = try? LiveRoom_ChatMessage(wire: body) else { return nil }
            what = .text
            (name, text) = (message.user.name, message.text)
        case .gift:
            guard let message = try? LiveRoom_GiftMessage(wire: body) else { return nil }
            what = .gift
            (name, text, count) = (message.user.name, message.giftname, Int(message.giftcount))
        case .notice:
            guard let message = try? LiveRoom_SystemNotice(wire: body) else { return nil }
            what = .notice
            text = message.text
        case .join:
            guard let message = try? LiveRoom_UserInfo(wire: body) else { return nil }
            what = .join
            name = message.name
        case .leave:
            guard let message = try? LiveRoom_UserInfo(wire: body) else { return nil }
            what = .leave
            name = message.name
        default:
            return nil
        }
        name = name.map(Self.cut)
        text = text.map(Self.cut)
    }

    private static func cut(_ text: String) -> String {
        guard text.utf8.count > maxBytes else { return text }
        return String(decoding: text.utf8.prefix(maxBytes), as: UTF8.self) + "…"
    }
}
