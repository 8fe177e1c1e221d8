// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Reuses outbound buffers while a loop is busy, and frees them when the loop is idle. So idle connections hold no
/// buffers, and busy connections allocate none.
struct BufferPool {
    /// The largest buffer that is kept.
    static let maxBufferBytes = 65_536
    /// The maximum total size of all kept buffers, in bytes.
    static let maxBytes = 8_388_608
    /// The size of a new buffer.
    static let newBufferBytes = 512

    private var free: [ByteBuffer] = []
    private var bytes = 0
    private var fewestSinceTrim = 0

    mutating func take() -> ByteBuffer {
        guard var buffer = free.popLast() else {
            fewestSinceTrim = 0
            return ByteBufferAllocator().buffer(capacity: Self.newBufferBytes)
        }
        bytes -= buffer.storageCapacity
        fewestSinceTrim = min(fewestSinceTrim, free.count)
        // If the buffer's memory is still being written to the peer, this allocates new memory. The old memory stays
        // allocated as long as the peer reads nothing.
        buffer.clear(minimumCapacity: Self.newBufferBytes)
        return buffer
    }

    mutating func giveBack(_ buffer: ByteBuffer) {
        let capacity = buffer.storageCapacity
        guard capacity > 0, capacity <= Self.maxBufferBytes, bytes + capacity <= Self.maxBytes else { return }
        bytes += capacity
        free.append(buffer)
    }

    /// Frees the buffers that were not needed since the last call.
    mutating func trim() {
        let unused = min(fewestSinceTrim, free.count)
        for buffer in free.prefix(unused) { bytes -= buffer.storageCapacity }
        free.removeFirst(unused)
        if free.isEmpty { free = [] }
        fewestSinceTrim = free.count
    }

    /// The number of kept buffers.
    var count: Int { free.count }
}
