// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A member of a room as the other members see it. A member chooses its own name and picture, and does not need an
/// account.
package struct RoomMember: Hashable, Sendable {
    /// The level of the member, as the application defines it.
    package let level: Int32
    package let name: String
    /// The URL of the member's picture; empty if there is none.
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
    /// The URL of the gift's picture; empty if there is none.
    package let url: String
    package let count: Int32

    package init(name: String, url: String, count: Int32) {
        self.name = name
        self.url = url
        self.count = count
    }
}

extension RoomMember {
    /// Checks the lengths of the name and the URL.
    ///
    /// - Throws: `.tooLarge`.
    package func check() throws(HermesError) {
        guard name.utf8.count <= RoomLimits.maxNameBytes, iconURL.utf8.count <= RoomLimits.maxURLBytes else {
            throw HermesError(.tooLarge, "user.name has at most 256 bytes, and user.icon_url at most 1,024 bytes")
        }
    }
}
