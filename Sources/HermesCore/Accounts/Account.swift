// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A stored account, without its password.
package struct Account: Sendable, Hashable {
    package let id: UserID
    package var nickName: NickName
    /// The URL of the avatar, at most 1,024 bytes; empty if there is none.
    package var avatarURL: String
    package var isDisabled: Bool
    package let createdAt: Timestamp

    /// The longest avatar URL, in bytes.
    package static let maxAvatarURLBytes = 1024

    package init(id: UserID, nickName: NickName, avatarURL: String = "", isDisabled: Bool = false, createdAt: Timestamp)
    {
        self.id = id
        self.nickName = nickName
        self.avatarURL = avatarURL
        self.isDisabled = isDisabled
        self.createdAt = createdAt
    }

    /// Throws `.tooLarge` or `.invalidArgument` unless the text is empty or a valid avatar URL.
    static func check(avatarURL: String) throws(HermesError) {
        guard avatarURL.utf8.count <= maxAvatarURLBytes else {
            throw HermesError(.tooLarge, "the avatar's URL is longer than \(maxAvatarURLBytes) bytes")
        }
        guard avatarURL.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw HermesError(.invalidArgument, "the avatar's URL holds characters that a URL may not have")
        }
        // Other users' clients may open any URL that they get, so only https and http are allowed. A reference without
        // a scheme is also allowed; the application decides what such a reference means.
        let end = avatarURL.utf8.firstIndex { ":/?#".utf8.contains($0) }
        if let end, avatarURL.utf8[end] == UInt8(ascii: ":"),
            !["http", "https"].contains(avatarURL[..<end].lowercased())
        {
            throw HermesError(.invalidArgument, "the avatar's URL must begin with https: or http:, or have no scheme")
        }
    }
}
