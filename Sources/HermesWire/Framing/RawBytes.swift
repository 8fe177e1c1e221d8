// Hermes
// SPDX-License-Identifier: Apache-2.0

extension UnsafeRawBufferPointer {
    /// Returns whether both buffers hold the same bytes. The function compares eight bytes at a time. For short names,
    /// it is as fast as a library function, because it can be inlined.
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
