// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The place that messages go to.
public enum Conversation: Hashable, Sendable {
    /// The 1:1 conversation with this account.
    case user(uid: UInt32)
    /// A group.
    case group(id: UInt32)
}

/// A message's content.
public enum MessageContent: Hashable, Sendable {
    /// A text of at most 64 KiB of UTF-8.
    case text(String)
    /// A picture, with its size in pixels; 0 if unknown.
    case image(url: String, width: UInt32, height: UInt32)
    /// An audio recording.
    case sound(url: String, durationSeconds: Double, fileName: String)
    /// A place, in degrees, WGS 84.
    case location(latitude: Double, longitude: Double, label: String)
    /// A video.
    case video(url: String, durationSeconds: Double, thumbnailURL: String)
    /// A sticker.
    case expression(id: Int32, name: String)
    /// Content of the application's own type.
    case custom(type: String, data: [UInt8])
    /// Content of a kind that this version does not know, or of a recalled message.
    case unknown
}

/// A delivered or stored message.
public struct Message: Hashable, Sendable {
    /// The message's id: 26 characters, sortable by time.
    public var id: String
    /// The conversation, named by the other user or the group.
    public var conversation: Conversation
    /// The number within the conversation, contiguous from 1.
    public var conversationSeq: UInt64
    /// The author's account.
    public var fromUID: UInt32
    /// The author's name.
    public var fromNickName: String
    /// The content.
    public var content: MessageContent
    /// The application's own pairs.
    public var attributes: [String: String]
    /// The time of the commit, in milliseconds since 1970.
    public var serverTimeMilliseconds: Int64
    /// Whether another device of this account sent it.
    public var isOwn: Bool
    /// Whether it was recalled; the content is then `unknown`.
    public var isRecalled: Bool

    /// The text; nil for other content.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

/// The server's confirmation that a message is committed and will be delivered.
public struct Receipt: Hashable, Sendable {
    /// The message's id: 26 characters, sortable by time.
    public var messageID: String
    /// The client id under which the message was sent.
    public var clientID: String
    /// The number within the conversation, contiguous from 1.
    public var conversationSeq: UInt64
    /// The time of the commit, in milliseconds since 1970.
    public var serverTimeMilliseconds: Int64
    /// Whether the message had been committed before, so that this send had no effect.
    public var isDuplicate: Bool

    package init(
        messageID: String,
        clientID: String,
        conversationSeq: UInt64,
        serverTimeMilliseconds: Int64,
        isDuplicate: Bool
    ) {
        self.messageID = messageID
        self.clientID = clientID
        self.conversationSeq = conversationSeq
        self.serverTimeMilliseconds = serverTimeMilliseconds
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
