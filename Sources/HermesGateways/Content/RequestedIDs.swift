// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Checks the ids in clients' requests. All protocols refuse a wrong id with the same text.
enum RequestedIDs {
    /// The refusal of a place in a list that is no uid.
    static let badPlace = HermesError(.invalidArgument, "a uid is 1 to 2^31-1")
    static let badGroup = HermesError(.invalidArgument, "a group's id is 1 to 2^31-1")

    /// Returns the account id for a number. A number that no account can have is treated like one that no account has.
    ///
    /// - Throws: `.notFound`.
    static func user(_ uid: some BinaryInteger) throws(HermesError) -> UserID {
        guard let user = UserID(uid) else { throw StoreRefusals.noSuchAccount }
        return user
    }

    /// Returns the group id for a number that is unsigned on the wire; nil if no group can have this number.
    static func group(_ id: UInt32) -> GroupID? { Int32(exactly: id).flatMap(GroupID.init(rawValue:)) }

    /// The account or group that a request names as the target of a conversation.
    enum Named {
        case user(UInt32)
        case group(UInt32)
    }

    /// Returns the conversation that an account names in a request.
    ///
    /// - Parameters:
    ///   - named: the target; nil if the request names none.
    ///   - user: the account.
    /// - Throws: `.invalidArgument`; `.notFound` for a uid that no account can have.
    static func conversation(_ named: Named?, of user: UserID) throws(HermesError) -> ConversationID {
        switch named {
        case .user(let uid):
            return .direct(between: user, and: try self.user(uid))
        case .group(let id):
            guard let group = group(id) else { throw badGroup }
            return .group(group)
        case nil:
            throw HermesError(.invalidArgument, "the conversation is missing: name a uid or a group")
        }
    }

    /// Parses the id of a message.
    ///
    /// - Throws: `.invalidArgument`.
    static func message(_ id: String) throws(HermesError) -> MessageID {
        guard let id = MessageID(id) else {
            throw HermesError(.invalidArgument, "message_id must be the 26 characters of the message's id")
        }
        return id
    }

    /// Checks uids, and how many there are.
    ///
    /// - Throws: `.tooLarge`; `.notFound` for a uid that no account can have.
    static func users(_ uids: [UInt32]) throws(HermesError) -> [UserID] {
        guard uids.count < Group.maxMembers else {
            throw HermesError(.tooLarge, "name at most \(Group.maxMembers - 1) accounts at once")
        }
        let users = uids.compactMap { UserID($0) }
        guard users.count == uids.count else { throw StoreRefusals.noSuchAccount }
        return users
    }
}
