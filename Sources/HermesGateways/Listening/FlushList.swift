// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Connections with output.
///
/// State: confined to its loop.
final class FlushList {
    /// The most connections whose memory in the list is kept.
    static let keptCapacity = 4_096

    /// Those of this tick.
    var dirty: [Connection] = []
    /// Those whose flush waits for a later turn.
    var waiting = Deque<Connection>()
    let flush: (Connection) -> Void

    init(flush: @escaping (Connection) -> Void) { self.flush = flush }
}
