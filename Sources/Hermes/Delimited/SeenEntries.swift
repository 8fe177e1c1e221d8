// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The ids of the last inbox entries that the app got. They show whether an entry has arrived before: after the server
/// has lost entries, an entry can arrive again under another seq.
struct SeenEntries: Sendable {
    private var names: Set<String> = []
    private var order = Deque<String>()

    /// The number of ids that are remembered.
    static let maxEntries = 1024

    /// Notes an entry.
    ///
    /// - Returns: whether the entry is new. An entry without an id always counts as new.
    mutating func insert(_ event: InboxEvent) -> Bool {
        guard let name = Self.name(of: event) else { return true }
        return insert(name)
    }

    /// Notes a message that this device has sent. Its entry in the account's own inbox is not for the app.
    mutating func insert(sent id: String) {
        if Self.isValid(id) { _ = insert(Self.own + id) }
    }

    private mutating func insert(_ name: String) -> Bool {
        guard names.insert(name).inserted else { return false }
        order.append(name)
        if order.count > Self.maxEntries { names.remove(order.removeFirst()) }
        return true
    }

    private static func name(of event: InboxEvent) -> String? {
        switch event.kind {
        // A message to one's own account becomes two entries with the same id.
        case .message(let message) where isValid(message.id.rawValue):
            (message.isOwn ? own : "message ") + message.id.rawValue
        case .push(let push) where isValid(push.id):
            "push " + push.id
        default: nil
        }
    }

    private static func isValid(_ id: String) -> Bool { (1...maxNameBytes).contains(id.utf8.count) }

    private static let own = "own "
    private static let maxNameBytes = 64
}
