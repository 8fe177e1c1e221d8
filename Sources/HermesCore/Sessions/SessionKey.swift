// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The key of a session: the same client id of two owners is two sessions.
package struct SessionKey: Hashable, Sendable {
    package let owner: SessionOwner
    package let clientID: String

    package init(owner: SessionOwner, clientID: String) {
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
