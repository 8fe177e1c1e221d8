// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of a group, from 1 to 2³¹−1.
public struct GroupID: RawRepresentable, Hashable, Sendable {
    /// The number.
    public let rawValue: Int32

    /// - Returns: nil for 0 and for negative numbers.
    public init?(rawValue: Int32) {
        guard rawValue > 0 else { return nil }
        self.rawValue = rawValue
    }
}

/// A conversation. Messages are addressed to a conversation, and numbered in it.
public enum ConversationID: Hashable, Sendable {
    /// A 1:1 conversation. The lower id comes first, so that both sides use the same value. Use
    /// ``direct(between:and:)`` to create it.
    case direct(UserID, UserID)
    case group(GroupID)

    /// Returns the conversation of two users in either order, or of a user with itself.
    package static func direct(between one: UserID, and other: UserID) -> ConversationID {
        one < other ? .direct(one, other) : .direct(other, one)
    }

    /// Creates a conversation from its stored form: the kind, and the two accounts or the group. The result is nil if
    /// the numbers are damaged.
    package init?(kind: Int64, a: Int64, b: Int64) {
        switch kind {
        case 1:
            guard let low = UserID(a), let high = UserID(b) else { return nil }
            self = .direct(between: low, and: high)
        case 2:
            guard let group = Int32(exactly: a).flatMap(GroupID.init(rawValue:)) else { return nil }
            self = .group(group)
        default:
            return nil
        }
    }

    /// Returns the other side of a 1:1 conversation as `user` sees it; nil for groups and for outsiders.
    package func peer(of user: UserID) -> UserID? {
        guard case .direct(let low, let high) = self else { return nil }
        if user == low { return high }
        return user == high ? low : nil
    }

    /// Returns the other account that gets a read mark of `user`: the other side of a 1:1 conversation. Returns nil for
    /// a group, and for a conversation of an account with itself.
    ///
    /// - Throws: `.forbidden` if `user` is neither of the two accounts.
    package func reader(_ user: UserID) throws(HermesError) -> UserID? {
        guard case .direct(let low, let high) = self else { return nil }
        guard low <= high, let peer = peer(of: user) else {
            throw HermesError(.forbidden, "you do not take part in this conversation")
        }
        return peer == user ? nil : peer
    }

    /// Returns the accounts that get a message of `user`. The sender comes first. The list is empty for a group: the
    /// commit determines the recipients, because commits also change the members of the group.
    ///
    /// - Throws: `.forbidden` if `user` is neither of the two accounts of a 1:1 conversation.
    func recipients(for user: UserID) throws(HermesError) -> [UserID] {
        if case .group = self { return [] }
        guard let peer = try reader(user) else { return [user] }
        return [user, peer]
    }
}
