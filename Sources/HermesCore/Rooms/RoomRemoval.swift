// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reason why the server removes a client from a room, as the client gets it. The reason is the same in every
/// protocol.
package struct RoomRemoval: Hashable, Sendable {
    package let code: HermesError.Code
    /// The reason as a text for people.
    package let reason: String

    package init(_ code: HermesError.Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package init(_ error: HermesError) { self.init(error.code, error.message) }

    /// The removal of a client because the rules do not let it into the room.
    package static func forbidden(_ room: RoomName) -> Self { Self(BoundTopicRules.refusal(.subscribe, room)) }

    /// The removal by an operator.
    package static let byOperator = Self(.forbidden, "an operator decided so")
}

/// An operator's removal of one account's clients, or of all clients, from a room. Removed clients may enter again.
package struct RoomExpulsion: Sendable, Hashable {
    package let room: RoomName
    /// The account whose clients are removed; nil if all clients are removed.
    package let account: Account?

    package init(of account: Account?, from room: RoomName) {
        self.room = room
        self.account = account
    }

    /// Whether the removal concerns a client with this account.
    ///
    /// - Parameter user: the client's account; nil if the client has no account.
    package func means(_ user: UserID?) -> Bool { account == nil || account?.id == user }

    /// Whether the removal concerns a client that has only a proved name.
    ///
    /// - Parameter name: the client's proved name; nil if the client has no name.
    package func means(userName name: String?) -> Bool { account == nil || account?.nickName.key == name }
}
