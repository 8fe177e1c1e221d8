// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where a kept session is open, among several nodes.
package struct SessionPlace: Sendable, Hashable {
    /// The process that has its connection; nil: it has none.
    package var node: NodeIdentity?
    /// The number of times that it was opened. A process that knows a lower number is not the last that opened it.
    package var opening: UInt64

    package init(node: NodeIdentity?, opening: UInt64) {
        self.node = node
        self.opening = opening
    }
}
