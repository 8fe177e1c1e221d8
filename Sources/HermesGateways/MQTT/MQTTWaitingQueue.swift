// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// The QoS 1 and 2 messages of a clean session (one that ends with its connection) that wait until the window or the
/// connection has room.
struct MQTTWaitingQueue {
    struct Message {
        let publication: Publication
        let qos: QoS
        let isRetained: Bool
        let identifiers: [UInt32]
        /// The shared subscription through which the message arrived; nil for other messages.
        var shared: SharedSubscription?
    }

    private var messages = Deque<Message>()
    /// The number of waiting messages from each shared subscription.
    private var shared: [ObjectIdentifier: Int] = [:]
    /// The approximate size of the messages, in bytes.
    private(set) var bytes = 0

    var count: Int { messages.count }
    /// Whether no message waits. Each waiting message adds to ``bytes``.
    var isEmpty: Bool { bytes == 0 }

    /// Appends a message.
    ///
    /// - Returns: false if there is no room. In that case, the message was not added.
    mutating func append(_ message: Message, maxCount: Int, maxBytes: Int) -> Bool {
        let weight = Self.weight(message)
        guard messages.count < maxCount, bytes + weight <= maxBytes else { return false }
        messages.append(message)
        bytes += weight
        if let shared = message.shared { self.shared[ObjectIdentifier(shared), default: 0] += 1 }
        return true
    }

    mutating func popFirst() -> Message? {
        guard let message = messages.popFirst() else { return nil }
        bytes -= Self.weight(message)
        if let shared = message.shared { forget(one: ObjectIdentifier(shared)) }
        if messages.isEmpty { self = MQTTWaitingQueue() }
        return message
    }

    private mutating func forget(one subscription: ObjectIdentifier) {
        guard let count = shared[subscription] else { return }
        shared[subscription] = count > 1 ? count - 1 : nil
    }

    /// Whether a message of one of these shared subscriptions waits.
    func holdsAny(of subscriptions: Set<ObjectIdentifier>) -> Bool {
        !shared.isEmpty && subscriptions.contains { shared[$0] != nil }
    }

    /// Removes and returns the messages of some shared subscriptions, in order. If there are any, all waiting messages
    /// are examined.
    mutating func take(of subscriptions: Set<ObjectIdentifier>) -> [Message] {
        guard holdsAny(of: subscriptions) else { return [] }
        for subscription in subscriptions { shared[subscription] = nil }
        var taken: [Message] = []
        var left = Deque<Message>()
        for message in messages {
            if let shared = message.shared, subscriptions.contains(ObjectIdentifier(shared)) {
                taken.append(message)
                bytes -= Self.weight(message)
            } else {
                left.append(message)
            }
        }
        messages = left
        return taken
    }

    private static func weight(_ message: Message) -> Int {
        message.publication.weight + message.publication.topic.rawValue.utf8.count + 128
    }
}
