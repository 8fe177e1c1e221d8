// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where a kept session is open, among several nodes.
package struct SessionPlace: Sendable, Hashable {
    /// The process that has its connection; nil: it has none.
    package var node: NodeIdentity?
    /// The number of times that it was opened. A process that knows a lower number is not the last that opened it.
    package var opening: UInt64
    /// When it was last opened or closed.
    package var since: Timestamp

    package init(node: NodeIdentity?, opening: UInt64, since: Timestamp) {
        self.node = node
        self.opening = opening
        self.since = since
    }
}
