// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Checks the ids in clients' requests. All protocols refuse a wrong id with the same text.
enum RequestedIDs {
    /// The error for a place in a list that is not a uid.
    static let badPlace = HermesError(.invalidArgument, "a uid is 1 to 2^31-1")
    static let badGroup = HermesError(.invalidArgument, "a group's id is 1 to 2^31-1")

    /// Returns the account id for a number. A number that cannot be an account id is treated like the id of an
    /// unknown account.
    ///
    /// - Throws: `.notFound`.
    static func user(_ uid: some BinaryInteger) throws(HermesError) -> UserID {
        guard let user = UserID(uid) else { throw StoreRefusals.noSuchAccount }
        return user
    }

    /// Returns the uid after which a page of a list begins; nil for 0, which is the beginning of the list.
    ///
    /// - Throws: ``badPlace``.
    static func place(after uid: UInt32) throws(HermesError) -> UserID? {
        guard uid != 0 else { return nil }
        guard let user = UserID(uid) else { throw badPlace }
        return user
    }

    /// Returns the group after which a page of a list begins; nil for 0, which is the beginning of the list.
    ///
    /// - Throws: ``badGroup``.
    static func place(afterGroup id: some BinaryInteger) throws(HermesError) -> GroupID? {
        guard id != 0 else { return nil }
        guard let group = group(id) else { throw badGroup }
        return group
    }

    /// Returns the device with an id.
    ///
    /// - Parameter field: the field's name, for the error.
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    static func device(_ id: String, in field: String = "device_id") throws(HermesError) -> DeviceID {
        guard let device = DeviceID(id) else {
            throw HermesError(
                .ofValue(id.utf8.count, atMost: DeviceID.maxBytes),
                "\(field) is 1 to \(DeviceID.maxBytes) bytes of printable ASCII"
            )
        }
        return device
    }

    /// Returns the room with a name.
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    static func room(_ name: String) throws(HermesError) -> RoomName {
        guard let room = RoomName(name) else {
            throw HermesError(
                .ofValue(name.utf8.count, atMost: RoomName.maxBytes),
                "a room's name is 1 to \(RoomName.maxBytes) letters, digits, '-', '_' or '.'"
            )
        }
        return room
    }

    /// Returns the group id for a number on the wire; nil if no group can have this number.
    static func group(_ id: some BinaryInteger) -> GroupID? { Int32(exactly: id).flatMap(GroupID.init(rawValue:)) }

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

    /// Checks uids and their count, and returns the account ids.
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
