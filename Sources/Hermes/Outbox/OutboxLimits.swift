// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits of an outbox.
package struct OutboxLimits: Hashable, Sendable {
    /// The largest number of messages, including failed messages.
    package var maxEntries: Int
    /// The largest total size of the messages as they are stored, in bytes.
    package var maxBytes: Int
    /// The largest number of conversations with a message under way. A conversation has at most one message under way
    /// at a time.
    package var maxSending: Int

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - maxEntries: the largest number of messages, including failed messages.
    ///   - maxBytes: the largest total size of the messages, in bytes.
    ///   - maxSending: the largest number of conversations with a message under way.
    package init(maxEntries: Int = 1000, maxBytes: Int = 4 * 1_048_576, maxSending: Int = 16) {
        self.maxEntries = max(1, maxEntries)
        self.maxBytes = max(1, maxBytes)
        self.maxSending = max(1, maxSending)
    }
}
