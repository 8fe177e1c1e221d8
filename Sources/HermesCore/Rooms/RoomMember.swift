// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Somebody in a room, as the others see it: a name and a picture of its own choice, whether or not it has an account.
package struct RoomMember: Hashable, Sendable {
    /// As the application counts it.
    package let level: Int32
    package let name: String
    /// Empty for none.
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
    /// The URL of its picture; empty for none.
    package let url: String
    package let count: Int32

    package init(name: String, url: String, count: Int32) {
        self.name = name
        self.url = url
        self.count = count
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
