// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What the server does for the client SDK beyond the protocols.
package struct ClientSettings: Sendable, Hashable {
    /// Whether the heartbeat intervals that clients report are told to other clients of networks of the same name.
    package var sharesHeartbeats: Bool

    package init(sharesHeartbeats: Bool = false) { self.sharesHeartbeats = sharesHeartbeats }
}
