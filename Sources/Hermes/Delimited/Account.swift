// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An account, with the data that other accounts may see.
public struct Account: Hashable, Sendable {
    /// The account's number.
    public var uid: UserID
    /// The account's name.
    public var nickName: String
    /// The account's picture; nil if it has none.
    public var avatarURL: URL?
    /// Whether one of the account's devices is connected.
    public var isOnline: Bool

    package init(uid: UserID, nickName: String, avatarURL: URL?, isOnline: Bool) {
        self.uid = uid
        self.nickName = nickName
        self.avatarURL = avatarURL
        self.isOnline = isOnline
    }
}
