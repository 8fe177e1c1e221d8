// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The server's services for the client SDK beyond the protocols.
package struct ClientSettings: Sendable, Hashable {
    /// Whether reported heartbeat intervals are suggested to other clients in networks of the same name.
    package var sharesHeartbeats: Bool

    package init(sharesHeartbeats: Bool = false) { self.sharesHeartbeats = sharesHeartbeats }
}
