// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The id of a message: 16 bytes, sortable by time (48 bits of milliseconds) and unguessable (80 random bits).
/// As text: 26 characters of Crockford's base 32.
package struct MessageID: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}
