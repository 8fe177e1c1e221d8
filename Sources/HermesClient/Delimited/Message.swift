// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where messages go.
public enum Conversation: Hashable, Sendable {
    /// 1:1 with this account.
    case user(uid: UInt32)
    /// A group.
    case group(id: UInt32)
}

/// What a message says.
public enum MessageContent: Hashable, Sendable {
    /// At most 64 KiB of UTF-8.
    case text(String)
    /// A picture; its size in pixels, 0 if unknown.
    case image(url: String, width: UInt32, height: UInt32)
    /// A recording.
    case sound(url: String, durationSeconds: Double, fileName: String)
    /// A place, in degrees, WGS 84.
    case location(latitude: Double, longitude: Double, label: String)
    /// A film.
    case video(url: String, durationSeconds: Double, thumbnailURL: String)
    /// A sticker.
    case expression(id: Int32, name: String)
    /// The application's own.
    case custom(type: String, data: [UInt8])
    /// A kind that this version does not know, or nothing, because the message was recalled.
    case unknown
}

/// A message as it is delivered and stored.
public struct Message: Hashable, Sendable {
    /// 26 characters, sortable by time.
    public var id: String
    /// The other user of a 1:1 conversation, or the group.
    public var conversation: Conversation
    /// Contiguous within the conversation, from 1.
    public var conversationSeq: UInt64
    /// The author's account.
    public var fromUID: UInt32
    /// The author's name.
    public var fromNickName: String
    /// What it says.
    public var content: MessageContent
    /// The application's own pairs.
    public var attributes: [String: String]
    /// When it was committed, in milliseconds since 1970.
    public var serverTimeMilliseconds: Int64
    /// Whether one's own account sent it, from another device.
    public var isOwn: Bool
    /// Whether it was recalled; the content is then `unknown`.
    public var isRecalled: Bool

    /// The text, where the message is one.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

/// The server has committed a message: it will be delivered.
public struct Receipt: Hashable, Sendable {
    /// 26 characters, sortable by time.
    public var messageID: String
    /// What made sending again safe.
    public var clientID: String
    /// Contiguous within the conversation, from 1.
    public var conversationSeq: UInt64
    /// When it was committed, in milliseconds since 1970.
    public var serverTimeMilliseconds: Int64
    /// Whether it had been committed before: nothing was sent a second time.
    public var isDuplicate: Bool
}

/// Stored messages of a conversation.
public struct History: Hashable, Sendable {
    /// Newest last.
    public var messages: [Message]
    /// Whether more is stored before the first of these.
    public var hasMore: Bool
}
