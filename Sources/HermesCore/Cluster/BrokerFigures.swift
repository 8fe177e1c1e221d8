// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The figures of a node's MQTT listeners, for `$SYS`.
package struct BrokerFigures: Sendable, Hashable {
    package var connected = 0
    /// The connections that have a kept session.
    package var online = 0
    /// The connections that were opened since the start of the node. The figures below are also counted since then.
    package var connections = 0
    package var framesReceived = 0
    package var framesSent = 0
    package var bytesReceived = 0
    package var bytesSent = 0
    package var dropped: UInt64 = 0

    package init() {}

    package static func + (left: Self, right: Self) -> Self {
        var sum = Self()
        sum.connected = left.connected + right.connected
        sum.online = left.online + right.online
        sum.connections = left.connections + right.connections
        sum.framesReceived = left.framesReceived + right.framesReceived
        sum.framesSent = left.framesSent + right.framesSent
        sum.bytesReceived = left.bytesReceived + right.bytesReceived
        sum.bytesSent = left.bytesSent + right.bytesSent
        sum.dropped = left.dropped + right.dropped
        return sum
    }
}

/// The last figures that each of the other nodes has sent.
///
/// State: a `Mutex` around a dictionary.
final class PeerFigures: Sendable {
    private let figures = Mutex<[NodeID: BrokerFigures]>([:])

    func told(_ figures: BrokerFigures, by node: NodeID) { self.figures.withLock { $0[node] = figures } }

    func left(_ node: NodeID) { figures.withLock { $0[node] = nil } }

    var sum: BrokerFigures { figures.withLock { $0.values.reduce(BrokerFigures(), +) } }
}

extension ClusterMember {
    /// Sends the figures of this node to the other nodes.
    ///
    /// - Returns: the sum over all nodes, as far as their figures have arrived.
    package func exchange(_ own: BrokerFigures) -> BrokerFigures {
        bus.hint(.figures(own), to: roster.peers)
        return own + figures.sum
    }
}
