// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics

/// The counts of one listener on one loop, as plain numbers that are published at each ``LoopContext/deadlineStep``.
final class ConnectionTally {
    var opened = 0
    var closed = 0
    // Exclusivity is unchecked here and below: these properties are changed for each frame, on one loop, and no other
    // code is called meanwhile.
    @exclusivity(unchecked)
    var framesIn = 0
    @exclusivity(unchecked)
    var framesOut = 0
    var bytesIn = 0
    var bytesOut = 0
    /// The messages that clients sent and were allowed to send, including publications to topics and rooms.
    @exclusivity(unchecked)
    var messagesIn = 0
    /// The inbox entries and the publications that were written or queued for clients.
    @exclusivity(unchecked)
    var messagesOut = 0
    /// The inbox entries that are counted in ``messagesOut``.
    var deliveries = 0
    private let metrics: GatewayMetrics

    init(_ metrics: GatewayMetrics) { self.metrics = metrics }

    func publish() {
        metrics.add(self)
        Self.publish(&opened, to: metrics.connectionsOpened)
        Self.publish(&closed, to: metrics.connectionsClosed)
        Self.publish(&framesIn, to: metrics.framesIn)
        Self.publish(&framesOut, to: metrics.framesOut)
        Self.publish(&bytesIn, to: metrics.bytesIn)
        Self.publish(&bytesOut, to: metrics.bytesOut)
        Self.publish(&messagesIn, to: metrics.messagesIn)
        Self.publish(&messagesOut, to: metrics.messagesOut)
        Self.publish(&deliveries, to: metrics.deliveries)
    }

    private static func publish(_ count: inout Int, to counter: Counter) {
        guard count > 0 else { return }
        counter.increment(by: count)
        count = 0
    }
}
