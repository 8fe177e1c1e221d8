// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Keeps the heartbeats that were learned for networks.
///
/// The methods are called on the event loops of connections, so they must not block.
package protocol HeartbeatStore: Sendable {
    /// Returns the heartbeat that was learned for the network with this label; nil if there is none.
    func learned(of network: String) -> LearnedHeartbeat?

    /// Keeps the heartbeat that was learned for the network with this label.
    func remember(_ learned: LearnedHeartbeat, of network: String)
}
