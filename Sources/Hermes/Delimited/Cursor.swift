// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The last inbox entry that a device has taken. An app that keeps the cursor continues right after this entry.
package struct Cursor: Hashable, Sendable {
    /// The epoch that the seq belongs to.
    package var epoch: UInt64
    /// The last seq that was taken.
    package var seq: UInt64

    /// Creates a cursor.
    package init(epoch: UInt64, seq: UInt64) {
        self.epoch = epoch
        self.seq = seq
    }
}
