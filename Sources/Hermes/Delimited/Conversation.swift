// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The target of messages: an account or a group.
public enum Conversation: Hashable, Sendable {
    /// The 1:1 conversation with this account.
    case user(UserID)
    /// A group.
    case group(GroupID)
}
