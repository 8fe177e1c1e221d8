// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reason why a connection ended.
package enum ConnectionEnd: Hashable, Sendable {
    /// The server closed the connection.
    case closed
    /// The network broke the connection.
    case reset
    /// Heartbeats were not answered.
    case heartbeatTimeout
    /// The device changed its network.
    case networkChanged
}
