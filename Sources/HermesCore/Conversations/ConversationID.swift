// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A group's number: 1 … 2³¹−1.
package struct GroupID: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32

    package init?(rawValue: Int32) {
        guard rawValue > 0 else { return nil }
        self.rawValue = rawValue
    }
}

/// What messages are addressed to and numbered within.
package enum ConversationID: Hashable, Sendable {
    /// 1:1; the lower id comes first, so that both sides name the same conversation. Made by ``direct(between:and:)``.
    case direct(UserID, UserID)
    case group(GroupID)

    /// The conversation of two users, in whichever order; of a user with itself if they are the same.
    package static func direct(between one: UserID, and other: UserID) -> ConversationID {
        one < other ? .direct(one, other) : .direct(other, one)
    }

    /// The other side of a 1:1 conversation as `user` sees it; nil for groups and for strangers to it.
    package func peer(of user: UserID) -> UserID? {
        guard case .direct(let low, let high) = self else { return nil }
        if user == low { return high }
        return user == high ? low : nil
    }

    /// Whom a reader's mark concerns beside the reader: the other of a 1:1 conversation; nil for a group and for a
    /// conversation with oneself.
    ///
    /// - Throws: `.forbidden` if the reader is neither of the two.
    package func reader(_ user: UserID) throws(HermesError) -> UserID? {
        guard case .direct(let low, let high) = self else { return nil }
        guard low <= high, let peer = peer(of: user) else {
            throw HermesError(.forbidden, "you do not take part in this conversation")
        }
        return peer == user ? nil : peer
    }
}
