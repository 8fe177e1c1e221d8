// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// Keeps learned heartbeats in memory, for the 20 most recent networks.
package final class MemoryHeartbeatStore: HeartbeatStore {
    /// The largest number of networks. A phone uses about this many in a week.
    static let maxNetworks = 20

    private let networks: NIOLockedValueBox<[String: LearnedHeartbeat]>

    /// Creates a store.
    ///
    /// - Parameter networks: learned heartbeats by network label.
    package init(_ networks: [String: LearnedHeartbeat] = [:]) { self.networks = NIOLockedValueBox(networks) }

    /// Returns the heartbeat that was learned for the network with this label; nil if there is none.
    package func learned(of network: String) -> LearnedHeartbeat? { networks.withLockedValue { $0[network] } }

    /// Keeps the heartbeat that was learned for the network with this label.
    package func remember(_ learned: LearnedHeartbeat, of network: String) {
        networks.withLockedValue { networks in
            networks[network] = learned
            guard networks.count > Self.maxNetworks else { return }
            let others = networks.filter { $0.key != network }
            if let oldest = others.min(by: { $0.value.changedAt < $1.value.changedAt }) { networks[oldest.key] = nil }
        }
    }

    var all: [String: LearnedHeartbeat] { networks.withLockedValue { $0 } }
}
