// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

/// The result of a login over IMPB.
public struct IMPBLogin: Hashable, Sendable {
    /// The account's number.
    public var uid: UserID
    /// The token for the next login, in place of the password. It is a secret.
    public var token: String
}
