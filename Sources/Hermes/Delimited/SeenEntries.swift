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
        guard names.insert(name).inserted else { return false }
        order.append(name)
        if order.count > Self.maxEntries { names.remove(order.removeFirst()) }
        return true
    }

    private static func name(of event: InboxEvent) -> String? {
        switch event.kind {
        // A message to one's own account is two entries with the same id.
        case .message(let message) where (1...maxNameBytes).contains(message.id.rawValue.utf8.count):
            (message.isOwn ? "own " : "message ") + message.id.rawValue
        case .push(let push) where (1...maxNameBytes).contains(push.id.utf8.count):
            "push " + push.id
        default: nil
        }
    }

    private static let maxNameBytes = 64
}
