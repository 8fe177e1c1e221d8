// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The place of a kept session in a cluster of several nodes: where the session is open. A kept session is one that
/// outlives its connection.
package struct SessionPlace: Sendable, Hashable {
    /// The process that has the session's connection; nil if the session has no connection.
    package var node: NodeIdentity?
    /// The number of times that the session was opened. A process that knows a lower number was not the last to open
    /// it.
    package var opening: UInt64
    /// The time at which the session was last opened or closed.
    package var since: Timestamp

    package init(node: NodeIdentity?, opening: UInt64, since: Timestamp) {
        self.node = node
        self.opening = opening
        self.since = since
    }
}
