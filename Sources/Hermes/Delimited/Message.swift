// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The place that messages go to.
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
    /// A place, in degrees, WGS 84.
    case location(latitude: Double, longitude: Double, label: String)
    /// A video.
    case video(url: URL, duration: Duration, thumbnailURL: URL?)
    /// A sticker.
    case expression(id: Int, name: String)
    /// Content of the application's own type.
    case custom(type: String, data: [UInt8])
    /// Content of a kind that this version does not know, or of a recalled message.
    case unknown
}

/// A delivered or stored message.
public struct Message: Hashable, Sendable, Identifiable {
    /// The message's id.
    public var id: MessageID
    /// The conversation, named by the other user or the group.
    public var conversation: Conversation
    /// The number within the conversation, contiguous from 1.
    public var conversationSeq: UInt64
    /// The author's account.
    public var fromUID: UserID
    /// The author's name.
    public var fromNickName: String
    /// The content.
    public var content: MessageContent
    /// The application's own pairs.
    public var attributes: [String: String]
    /// When the server committed it, by the server's clock.
    public var date: Date
    /// Whether another device of this account sent it.
    public var isOwn: Bool
    /// Whether it was recalled; the content is then `unknown`.
    public var isRecalled: Bool

    /// The text; nil for other content.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

/// The server's confirmation that a message is committed and will be delivered.
public struct Receipt: Hashable, Sendable {
    /// The message's id.
    public var messageID: MessageID
    /// The client id under which the message was sent.
    package var clientID: String
    /// The number within the conversation, contiguous from 1.
    public var conversationSeq: UInt64
    /// When the server committed it, by the server's clock.
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
    /// Whether older messages are stored.
    public var hasMore: Bool
}
