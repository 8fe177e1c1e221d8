// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The result of a login.
public struct Session: Hashable, Sendable {
    /// The account.
    public var uid: UserID
    /// The account's name.
    public var nickName: String
    /// The token, which replaces the password at the next login. It is a secret.
    public var token: String
    /// The inbox's epoch. It changes only if the server's store was lost.
    package var epoch: UInt64
    /// The server's software and version.
    package var serverVersion: String
}
