// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The key of a session: the same client id under two accounts is two sessions.
package struct SessionKey: Hashable, Sendable {
    /// The account's ``NickName/key``, or another name from the authenticator; empty for anonymous clients.
    package let owner: String
    package let clientID: String

    package init(owner: String, clientID: String) {
        self.owner = owner
        self.clientID = clientID
    }
}

/// The store's number of a durable session; never reused.
package struct DurableSessionID: RawRepresentable, Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
