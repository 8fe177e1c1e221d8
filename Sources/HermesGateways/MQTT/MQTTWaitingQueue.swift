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

    /// Takes out what came by a shared subscription, in its order.
    mutating func take(of subscription: SharedSubscription) -> [Publication] {
        let taken = messages.filter { $0.shared === subscription }
        guard !taken.isEmpty else { return [] }
        messages.removeAll { $0.shared === subscription }
        bytes -= taken.reduce(0) { $0 + Self.weight($1) }
        return taken.map(\.publication)
    }

    private static func weight(_ message: Message) -> Int { message.publication.payload.readableBytes + 256 }
}
