// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stored messages of a conversation.
public struct History: Hashable, Sendable {
    /// The messages, oldest first.
    public var messages: [Message]
    /// Whether the server has stored older messages.
    public var hasMore: Bool
}
