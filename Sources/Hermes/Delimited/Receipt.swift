// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
