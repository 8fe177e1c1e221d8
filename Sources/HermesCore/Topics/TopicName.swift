// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A topic name: a path of levels separated by `/`, without wildcards. The room `lobby` is the topic `room/lobby`.
public struct TopicName: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// The length of the longest name, in bytes of UTF-8 [MQTT-4.7.3-3].
    package static let maxBytes = 65_535

    /// Creates a name from a client's text, and checks the text.
    ///
    /// - Returns: nil if the text is empty, is too long, or contains `+`, `#` or U+0000.
    package init?(_ rawValue: String) {
        let bytes = rawValue.utf8
        guard !bytes.isEmpty, bytes.count <= Self.maxBytes else { return nil }
        guard bytes.allSatisfy({ $0 != 0 && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#") }) else { return nil }
        self.rawValue = rawValue
    }

    /// Creates a name from a text that was already checked.
    package init(checked rawValue: String) { self.rawValue = rawValue }

    /// Creates the name of a room's topic.
    package init(room: RoomName) {
        rawValue = Self.roomPrefix + room.rawValue
    }

    /// The prefix of room topics.
    package static let roomPrefix = "room/"

    /// The room of this topic; nil if the topic is not that of a room.
    package var room: RoomName? {
        guard rawValue.hasBytes(startingWith: Self.roomPrefix) else { return nil }
        return RoomName(String(rawValue.utf8.dropFirst(Self.roomPrefix.utf8.count)) ?? "")
    }

    /// Whether the topic belongs to the account with this name: the topic is `user/NAME` or is below it.
    package func belongs(to name: String) -> Bool {
        let own = "user/" + name
        return rawValue.hasBytes(of: own) || rawValue.hasBytes(startingWith: own + "/")
    }

    /// The name.
    public var description: String { rawValue }

    /// Compares byte by byte.
    public static func == (left: Self, right: Self) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { rawValue.hashBytes(into: &hasher) }
}
