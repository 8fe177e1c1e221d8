// Hermes
// SPDX-License-Identifier: Apache-2.0

extension UnsafeRawBufferPointer {
    /// Compares eight bytes at a time; as fast as a library for short names, and without a call.
    @inlinable
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var index = 0
        while index + 8 <= count {
            let own = loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard own == other.loadUnaligned(fromByteOffset: index, as: UInt64.self) else { return false }
            index += 8
        }
        while index < count {
            guard self[index] == other[index] else { return false }
            index += 1
        }
        return true
    }
}
