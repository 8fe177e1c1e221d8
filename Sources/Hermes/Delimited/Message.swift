// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A delivered or stored message.
public struct Message: Hashable, Sendable, Identifiable {
    /// The message's id.
    public var id: MessageID
    /// The conversation, identified by the other account or the group.
    public var conversation: Conversation
    /// The message's number within the conversation. The numbers are contiguous from 1.
    public var conversationSeq: UInt64
    /// The author's account.
    public var fromUID: UserID
    /// The author's name.
    public var fromNickName: String
    /// The content.
    public var content: MessageContent
    /// The application's own key-value pairs.
    public var attributes: [String: String]
    /// The time at which the server committed the message, by the server's clock.
    public var date: Date
    /// Whether this account sent the message. In the inbox, such a message comes from another device of the account; in
    /// the history, it can also come from this device.
    public var isOwn: Bool
    /// Whether the message was recalled. Its content is then ``MessageContent/unknown``.
    public var isRecalled: Bool

    /// The text; nil if the content is not a text.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}
