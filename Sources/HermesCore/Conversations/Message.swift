// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A message to be sent.
package struct MessageDraft: Sendable, Hashable {
    package var conversation: ConversationID
    /// The id that makes it safe to send a message again. The id is unique per sender, and has 1 to 64 bytes. If the id
    /// is nil, every send is a new message.
    package var clientID: String?
    package var content: MessageContent
    /// The time between the sending of the message and its expiry; nil means the server's retention time.
    package var expiresAfter: Duration?

    package init(
        conversation: ConversationID,
        clientID: String?,
        content: MessageContent,
        expiresAfter: Duration? = nil
    ) {
        self.conversation = conversation
        self.clientID = clientID
        self.content = content
        self.expiresAfter = expiresAfter
    }
}

/// A committed message.
package struct Message: Sendable, Hashable {
    package let id: MessageID
    package let conversation: ConversationID
    /// The number of the message in its conversation. The numbers are contiguous and begin at 1.
    package let conversationSeq: UInt64
    package let sender: UserID
    package let senderName: String
    /// The sending device, which does not get its own message back.
    package let senderDevice: DeviceID?
    package let clientID: String?
    /// The content; empty after the message is recalled.
    package var content: MessageContent
    package var sentAt: Timestamp
    package var expiresAt: Timestamp
    package var isRecalled: Bool

    package init(
        id: MessageID,
        conversation: ConversationID,
        conversationSeq: UInt64,
        sender: UserID,
        senderName: String,
        senderDevice: DeviceID?,
        clientID: String?,
        content: MessageContent,
        sentAt: Timestamp,
        expiresAt: Timestamp,
        isRecalled: Bool = false
    ) {
        self.id = id
        self.conversation = conversation
        self.conversationSeq = conversationSeq
        self.sender = sender
        self.senderName = senderName
        self.senderDevice = senderDevice
        self.clientID = clientID
        self.content = content
        self.sentAt = sentAt
        self.expiresAt = expiresAt
        self.isRecalled = isRecalled
    }
}

/// The result that a sender gets for a committed message.
package struct SendReceipt: Sendable, Hashable {
    package let messageID: MessageID
    package let clientID: String?
    package let conversationSeq: UInt64
    /// The seq of the entry in the sender's own inbox.
    package let inboxSeq: UInt64
    package let sentAt: Timestamp
    /// Whether a message with this client id was already committed. If so, nothing was sent.
    package let isDuplicate: Bool
    /// The number of inboxes that got the message, as far as this number is known. The sender is charged for them.
    package var recipientCount = 1
    /// The number of connected devices of these inboxes.
    package var deviceCount = 0

    package init(
        messageID: MessageID,
        clientID: String?,
        conversationSeq: UInt64,
        inboxSeq: UInt64,
        sentAt: Timestamp,
        isDuplicate: Bool
    ) {
        self.messageID = messageID
        self.clientID = clientID
        self.conversationSeq = conversationSeq
        self.inboxSeq = inboxSeq
        self.sentAt = sentAt
        self.isDuplicate = isDuplicate
    }
}
