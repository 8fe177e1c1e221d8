// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// Messages with QoS 1 and 2 of a clean session that wait for room in the window or in the connection.
struct MQTTWaitingQueue {
    struct Message {
        let publication: Publication
        let qos: QoS
        let isRetained: Bool
        let identifiers: [UInt32]
        /// The part in a shared subscription that it came by.
        var shared: SharedSubscription?
    }

    private var messages = Deque<Message>()
    /// What they hold, in bytes, about.
    private(set) var bytes = 0

    var count: Int { messages.count }
    var isEmpty: Bool { messages.isEmpty }

    /// - Returns: false if there is no room; then nothing was taken.
    mutating func append(_ message: Message, maxCount: Int, maxBytes: Int) -> Bool {
        let weight = Self.weight(message)
        guard messages.count < maxCount, bytes + weight <= maxBytes else { return false }
        messages.append(message)
        bytes += weight
        return true
    }

    mutating func popFirst() -> Message? {
        guard let message = messages.popFirst() else { return nil }
        bytes -= Self.weight(message)
        if messages.isEmpty { self = MQTTWaitingQueue() }
        return message
    }

    /// Takes out what came by some shared subscriptions, in its order.
    mutating func take(of subscriptions: Set<ObjectIdentifier>) -> [Message] {
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
