// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A message in the outbox.
public struct OutboxEntry: Hashable, Sendable, Identifiable {
    /// The progress of a message.
    public enum Status: Hashable, Sendable {
        /// The message waits for a connection, for earlier messages of its conversation, or for the next try after a
        /// temporary refusal.
        case queued
        /// The message is on its way to the server.
        case sending
        /// The server has committed the message, which is no longer in the outbox.
        case sent(Receipt)
        /// The message was refused permanently. It stays in the outbox until the app retries or discards it.
        case failed(HermesClientError)
        /// The app has discarded the message, which is no longer in the outbox.
        case discarded
    }

    /// The client id, as in ``SentMessage/id``. It identifies the message before the server has assigned a message id,
    /// and lets the server recognize a repetition.
    public let id: String
    /// The recipient or group.
    public var conversation: Conversation
    /// The content.
    public var content: MessageContent
    /// The application's own key-value pairs.
    public var attributes: [String: String]
    /// The time at which the app sent the message, by the device's clock.
    public var queuedAt: Date
    /// The progress.
    public var status: Status
}
