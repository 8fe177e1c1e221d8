// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesGateways

/// Read buffers belong to the event loop, because no budget counts read buffers of connections.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReadBuffersTests {
    /// Reads like NIO's channel: as many bytes as are available and fit into the buffer.
    private struct Channel {
        private var pool: NIOPooledRecvBufferAllocator

        init(_ buffers: ReadBuffers, isLong: Bool = true) {
            pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: buffers.allocator(isLong: isLong))
        }

        /// - Returns: the buffer, and the number of remaining bytes.
        mutating func read(_ bytes: Int) -> (buffer: ByteBuffer, left: Int) {
            let (buffer, read) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
                let count = min(bytes, buffer.writableBytes)
                return buffer.writeRepeatingByte(1, count: count)
            }
            pool.record(actualReadBytes: read)
            return (buffer, bytes - read)
        }
    }

    private func place(_ buffer: ByteBuffer) -> UInt {
        buffer.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
    }

    @Test func `a connection that sends much reads long, one that sends little reads short`() {
        let buffers = ReadBuffers()
        var channel = Channel(buffers)
        var left = 200_000
        var sizes: [Int] = []
        while left > 0 {
            let read = channel.read(left)
            sizes.append(read.buffer.storageCapacity)
            left = read.left
            buffers.giveBack(read.buffer)
        }
        #expect(sizes.prefix(4) == [256, 1_024, 8_192, 65_536])
        sizes = (0..<12).map { _ in channel.read(50).buffer.storageCapacity }
        #expect(sizes.last == 1_024)
        var stranger = Channel(buffers, isLong: false)
        #expect((0..<9).map { _ in stranger.read(100_000).buffer.storageCapacity }.max() == 1_024)
    }

    @Test func `connections share the buffers, and none is used while somebody has a part of it`() {
        let buffers = ReadBuffers()
        var channels = (0..<100).map { _ in Channel(buffers) }
        for index in channels.indices { _ = channels[index].read(10) }
        var places: Set<UInt> = []
        for index in channels.indices {
            let read = channels[index].read(500)
            places.insert(place(read.buffer))
            buffers.giveBack(read.buffer)
        }
        #expect(places.count == 1)
        // The slice is kept like a publication to another loop.
        var first = channels[0].read(500).buffer
        buffers.giveBack(first)
        let kept = first.readSlice(length: 500)
        first = ByteBuffer()
        let next = channels[1].read(600).buffer
        #expect(kept?.readableBytesView.allSatisfy { $0 == 1 } == true)
        #expect(kept.map(place) != place(next))
    }
}
