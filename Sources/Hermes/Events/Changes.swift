// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A change of a contact, made by the other account.
public enum ContactChange: Hashable, Sendable {
    /// The account asked for contact.
    case requested
    /// The account accepted.
    case accepted
    /// The account declined.
    case declined
    /// The account ended the contact.
    case removed
}

/// A change of a group.
public enum GroupChange: Hashable, Sendable {
    /// The group was created, with these members besides the owner.
    case created([UserID])
    /// The group's name, picture or rules changed.
    case changed
    /// Members were added.
    case membersAdded([UserID])
    /// Members left or were removed.
    case membersRemoved([UserID])
    /// The group was dissolved.
    case dissolved
}
