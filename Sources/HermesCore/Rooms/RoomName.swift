// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The name of a room: 1 to 64 ASCII letters, digits, `-`, `_` and `.`.
public struct RoomName: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// The maximum length of a name, in bytes.
    package static let maxBytes = 64

    /// Checks a name.
    ///
    /// - Returns: nil for a text that is empty, is too long, or has other characters.
    package init?(_ rawValue: String) {
        let bytes = rawValue.utf8
        guard (1...Self.maxBytes).contains(bytes.count), bytes.allSatisfy(Self.isAllowed) else { return nil }
        self.rawValue = rawValue
    }

    private init(checked rawValue: String) { self.rawValue = rawValue }

    /// The room of the default LiveRoom port.
    package static let lobby = RoomName(checked: "lobby")

    /// The name.
    public var description: String { rawValue }

    /// The topic that members of the room subscribe to.
    package var topic: TopicName { TopicName(room: self) }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default:
            false
        }
    }
}
