// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A change of a contact, made by the other account.
public struct ContactChange: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: Hashable, Sendable {
        /// The account asked for contact.
        case requested
        /// The account accepted.
        case accepted
        /// The account declined.
        case declined
        /// The account ended the contact.
        case removed
    }

    /// The kind of change.
    public var kind: Kind
    /// The account that made the change.
    public var uid: UserID
    /// The account's name.
    public var nickName: String
    /// The text that came with the request or the answer.
    public var message: String
}

/// A change of a group.
public struct GroupChange: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: Hashable, Sendable {
        /// The group was created.
        case created
        /// The group's name, picture or rules changed.
        case changed
        /// Members were added.
        case membersAdded
        /// Members left or were removed.
        case membersRemoved
        /// The group was dissolved.
        case dissolved
    }

    /// The kind of change.
    public var kind: Kind
    /// The group's id.
    public var groupID: GroupID
    /// The group's name.
    public var name: String
    /// The account that made the change.
    public var byUID: UserID
    /// The members that were added or removed.
    public var uids: [UserID]
}
