// Hermes
// SPDX-License-Identifier: Apache-2.0

/// FNV-1a, 64 bits: the same in every process, and so fit for stores and other nodes, unlike `Hasher`. It does not
/// protect from values that were chosen to collide.
package struct StableHash: Sendable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        for byte in bytes { combine(byte) }
    }

    /// The hash as stores keep it.
    package var stored: Int64 { Int64(bitPattern: value) }
}
