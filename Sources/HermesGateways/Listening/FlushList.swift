// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Connections with output that must be flushed.
///
/// State: confined to its loop.
final class FlushList {
    /// The number of connections up to which the memory of the list is kept for reuse.
    static let keptCapacity = 4_096

    /// The connections that got output in this tick (one pass of the event loop).
    var dirty: [Connection] = []
    /// The connections whose flush waits for a later turn.
    var waiting = Deque<Connection>()
    let flush: (Connection) -> Void

    init(flush: @escaping (Connection) -> Void) { self.flush = flush }
}
