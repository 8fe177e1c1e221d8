// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A 64-bit FNV-1a hash. Unlike the hashes of `Hasher`, it is the same in every process, so it can be stored and sent
/// to other nodes. It does not protect against values that were chosen to collide.
package struct StableHash: Sendable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        for byte in bytes { combine(byte) }
    }

    /// The hash in the form that stores keep.
    package var stored: Int64 { Int64(bitPattern: value) }
}
