// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The target of messages: an account or a group.
public enum Conversation: Hashable, Sendable {
    /// The 1:1 conversation with this account.
    case user(UserID)
    /// A group.
    case group(GroupID)
}

/// A message's content. Newer versions add kinds, so a `switch` over them needs a `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MessageContent: Hashable, Sendable {
    /// A text of at most 64 KiB of UTF-8.
    case text(String)
    /// A picture, with its size in pixels; 0 if unknown.
    case image(url: URL, width: Int, height: Int)
    /// An audio recording.
    case sound(url: URL, duration: Duration, fileName: String)
    /// A place: latitude and longitude in degrees (WGS 84), and a label.
    case location(latitude: Double, longitude: Double, label: String)
    /// A video.
    case video(url: URL, duration: Duration, thumbnailURL: URL?)
    /// A sticker.
    case expression(id: Int, name: String)
    /// Content of the application's own type.
    case custom(type: String, data: [UInt8])
    /// Content that this version does not know, or the removed content of a recalled message.
    case unknown
}

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

/// The server's confirmation that a message is committed and will be delivered.
public struct Receipt: Hashable, Sendable {
    /// The message's id.
    public var messageID: MessageID
    /// The client id under which the message was sent.
    package var clientID: String
    /// The message's number within the conversation. The numbers are contiguous from 1.
    public var conversationSeq: UInt64
    /// The time at which the server committed the message, by the server's clock.
    public var date: Date
    /// Whether the message had been committed before, so that this send had no effect.
    package var isDuplicate: Bool

    package init(
        messageID: MessageID,
        clientID: String,
        conversationSeq: UInt64,
        date: Date,
        isDuplicate: Bool
    ) {
        self.messageID = messageID
        self.clientID = clientID
        self.conversationSeq = conversationSeq
        self.date = date
        self.isDuplicate = isDuplicate
    }
}

/// Stored messages of a conversation.
public struct History: Hashable, Sendable {
    /// The messages, oldest first.
    public var messages: [Message]
    /// Whether the server has stored older messages.
    public var hasMore: Bool
}
