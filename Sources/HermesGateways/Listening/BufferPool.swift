// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Outbound buffers that are used again while a loop is busy and let go when it is not, so that idle connections hold
/// none and busy ones allocate none.
struct BufferPool {
    /// Buffers that grew beyond this are not kept.
    static let maxBufferBytes = 65_536
    /// All kept buffers together.
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
        // Still being written? Then this makes a new one of the same size.
        buffer.clear()
        return buffer
    }

    mutating func giveBack(_ buffer: ByteBuffer) {
        let capacity = buffer.storageCapacity
        guard capacity <= Self.maxBufferBytes, bytes + capacity <= Self.maxBytes else { return }
        bytes += capacity
        free.append(buffer)
    }

    /// Lets go of the buffers that nobody needed since the last call.
    mutating func trim() {
        let unused = min(fewestSinceTrim, free.count)
        for buffer in free.prefix(unused) { bytes -= buffer.storageCapacity }
        free.removeFirst(unused)
        if free.isEmpty { free = [] }
        fewestSinceTrim = free.count
    }

    /// How many buffers wait to be used again.
    var count: Int { free.count }
}
