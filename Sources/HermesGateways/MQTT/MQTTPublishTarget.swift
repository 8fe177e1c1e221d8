// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// The target of a PUBLISH, cached because the next PUBLISH usually has the same target.
final class MQTTPublishTarget {
    /// The topic's bytes.
    private let bytes: [UInt8]
    let topic: TopicName
    /// The account that publishes; nil for an anonymous client.
    let sender: UserID?
    let route: TopicRoute
    /// Whether the client may publish to the topic, by the rules of the generation ``rules``.
    let isAllowed: Bool
    let rules: UInt64
    /// Whether messages need a further check, because they are for the server itself, for a room or for an application
    /// topic (``ApplicationTopics``).
    let isSpecial: Bool
    /// The kept sessions that get the target's publications; nil if no search was made yet, or if a new search is
    /// necessary.
    weak var durable: DurableRoute?
    /// Whether the first search for ``durable`` was charged.
    var isSearched = false

    init(
        bytes: [UInt8],
        topic: TopicName,
        sender: UserID?,
        route: TopicRoute,
        isAllowed: Bool,
        rules: UInt64,
        isSpecial: Bool
    ) {
        self.bytes = bytes
        self.topic = topic
        self.sender = sender
        self.route = route
        self.isAllowed = isAllowed
        self.rules = rules
        self.isSpecial = isSpecial
    }

    /// Whether these bytes are the target's topic.
    func isNamed(_ buffer: ByteBuffer, at start: Int, length: Int) -> Bool {
        guard length == bytes.count else { return false }
        let offset = start - buffer.readerIndex
        return buffer.withUnsafeReadableBytes { input in
            guard offset >= 0, input.count >= offset + length else { return false }
            let name = UnsafeRawBufferPointer(rebasing: input[offset..<offset + length])
            return bytes.withUnsafeBytes { $0.hasSameBytes(as: name) }
        }
    }
}
