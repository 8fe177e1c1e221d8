// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The order in which clients asked for a device or a session. If two connections ask for the same device or session,
/// the connection that asked later gets the device or session. This is so even if the check of its login ends first.
///
/// The order exists only within one process. It says nothing about connections to other nodes.
package struct AttachmentOrder: Comparable, Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)

    private let rawValue: UInt64

    /// Returns the place of a request that was read now. It is later than every place that was returned before.
    package static func next() -> Self { Self(rawValue: last.add(1, ordering: .relaxed).newValue) }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
