// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Checks the ids that clients name in requests, and refuses wrong ones in the same words in all protocols.
enum RequestedIDs {
    static let badGroup = HermesError(.invalidArgument, "a group's id is 1 to 2^31-1")

    /// Returns the group with an id that is unsigned on the wire; nil if there can be none.
    static func group(_ id: UInt32) -> GroupID? { Int32(exactly: id).flatMap(GroupID.init(rawValue:)) }

    /// Checks uids and their number.
    ///
    /// - Throws: `.tooLarge`, `.invalidArgument`.
    static func users(_ uids: [UInt32]) throws(HermesError) -> [UserID] {
        guard uids.count < Group.maxMembers else {
            throw HermesError(.tooLarge, "name at most \(Group.maxMembers - 1) accounts at once")
        }
        let users = uids.compactMap { UserID($0) }
        guard users.count == uids.count else { throw HermesError(.invalidArgument, "a uid is 1 to 2^31-1") }
        return users
    }
}
