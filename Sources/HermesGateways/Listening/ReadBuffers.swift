// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import NIOCore

/// The buffers into which an event loop reads from its plain connections. A connection has one of these buffers only
/// during a read. If connections kept their buffers, each connection that has ever sent a lot of data would have a
/// large buffer, and no budget counts these buffers. If a part of a read is kept, this part is copied
/// (``ConnectionHandler``, ``Publication/owned()``).
///
/// This class is unchecked Sendable because NIO's allocators are Sendable. It is confined to the event loop.
final class ReadBuffers: @unchecked Sendable {
    /// The length of the longest read, in bytes.
    static let maxBytes = sizes[2]
    /// The length of the longest read before the login, in bytes.
    static let leastBytes = sizes[0]
    /// The sizes of buffers in bytes. A message that is passed on to other loops keeps its whole buffer in memory, so a
    /// short message should have a short buffer.
    private static let sizes = [1_024, 8_192, 65_536]
    /// The largest number of buffers of each size that are kept for the next reads. If publications are handed over
    /// to other loops, their buffers are in use until these loops have delivered them. So enough buffers are kept for
    /// all reads from many busy publishers in one tick.
    private static let most = [128, 64, 16]

    private var kept: [Deque<ByteBuffer>] = Array(repeating: [], count: sizes.count)

    /// Returns a buffer that nobody uses. The first choice is the buffer that was given back last, because its memory
    /// is in the processor's caches. The second choice is the buffer that was given back first, because other loops
    /// have finished with it by now.
    private func take(_ size: Int) -> ByteBuffer {
        if let last = kept[size].indices.last {
            if kept[size][last].modifyIfUniquelyOwned({ $0.clear() }) != nil { return kept[size].removeLast() }
            if kept[size][0].modifyIfUniquelyOwned({ $0.clear() }) != nil { return kept[size].removeFirst() }
        }
        return ByteBufferAllocator().buffer(capacity: Self.sizes[size])
    }

    /// Takes back a buffer whose read has been examined. Parts of the buffer may still be in use.
    func giveBack(_ buffer: ByteBuffer) {
        guard let size = Self.sizes.firstIndex(of: buffer.storageCapacity) else { return }
        if kept[size].count >= Self.most[size] { kept[size].removeFirst() }
        kept[size].append(buffer)
    }

    /// Makes a connection use these buffers for its reads from now on. The channel reads one message per pass
    /// (``Listener/bootstrap(_:maxReadBytes:logger:accept:)``), because NIO keeps a buffer for each message of a
    /// pass.
    ///
    /// - Parameter isLong: whether a read may be longer than the shortest buffer.
    func read(_ channel: any Channel, isLong: Bool) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.recvAllocator, value: allocator(isLong: isLong))
    }

    /// Returns the allocator for one connection.
    func allocator(isLong: Bool) -> any RecvByteBufferAllocator { Allocator(self, isLong: isLong) }

    /// Chooses the sizes of the buffers for one connection.
    private struct Allocator: RecvByteBufferAllocator {
        /// The size of a channel's first buffer, in bytes. It is small, because NIO keeps this buffer for as long as
        /// the channel lives.
        private static let firstBytes = 256
        /// The number of short reads after which the next smaller size is enough.
        private static let shortReads = 4

        private let buffers: ReadBuffers
        private let mostSize: Int
        private var size: Int?
        private var shortReads = 0

        init(_ buffers: ReadBuffers, isLong: Bool) {
            self.buffers = buffers
            mostSize = isLong ? ReadBuffers.sizes.count - 1 : 0
        }

        func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
            guard let size else { return allocator.buffer(capacity: Self.firstBytes) }
            return buffers.take(size)
        }

        /// Chooses the size of the next buffer.
        ///
        /// - Returns: always true, so that NIO does not use its first buffer again.
        mutating func record(actualReadBytes bytes: Int) -> Bool {
            guard let size else {
                size = 0
                return true
            }
            if bytes >= ReadBuffers.sizes[size] {
                self.size = min(size + 1, mostSize)
                shortReads = 0
            } else if size > 0, bytes <= ReadBuffers.sizes[size - 1] / 2 {
                shortReads += 1
                guard shortReads >= Self.shortReads else { return true }
                self.size = size - 1
                shortReads = 0
            } else {
                shortReads = 0
            }
            return true
        }
    }
}
