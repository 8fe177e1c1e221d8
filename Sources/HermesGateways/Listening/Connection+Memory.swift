// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// Memory: how much a connection holds, and what happens if all connections hold too much.
extension Connection {
    /// The overhead of a waiting frame, in bytes.
    static let frameOverhead = 64

    /// The size in bytes from which a write is counted as memory until the operating system has taken it. Smaller
    /// writes are counted only if several of them wait (``heldWrites``).
    static let countWrittenFrom = 65_536
    /// The approximate memory of the small writes that waited, without being counted, before the first held write.
    private static let bytesBeforeHeld = flushesPerLook * BufferPool.newBufferBytes

    /// Reports the held memory to the loop, if it has changed.
    func measureMemory() {
        // An ending connection's memory counts as freed, so that no other connection pays for it.
        let isOpen = phase == .open
        let own =
            !isOpen
            ? 0
            : queue.bytes &+ queue.count &* Self.frameOverhead &+ unreadBytes &+ sessionBytes
                &+ unansweredBytes &+ (backlog?.ownBytes ?? 0) &+ heldBufferBytes
        heldBytes = isOpen ? own &+ sharedBytes : 0
        guard own != ownBytes else { return }
        let change = own &- ownBytes
        ownBytes = own
        loop.heldChanged(by: change)
    }

    /// The memory of the buffers of held writes, and of the output that is collected while they are held.
    private var heldBufferBytes: Int {
        guard heldWrites > 0 else { return 0 }
        return (backlog?.heldWriteBytes ?? 0) &+ pending.storageCapacity &+ Self.bytesBeforeHeld
    }

    /// Counts a large write, or a frame of which TLS makes a copy, as memory until the operating system has taken it.
    /// Bytes that connections of a loop share count once in the loop's sum. When the connections that must free
    /// memory are chosen, each connection is charged for its part of the shared bytes (``SharedFrames/part``).
    ///
    /// - Parameter isOwn: whether no other connection shares the bytes.
    /// - Returns: the promise for the write; nil if the bytes are not counted.
    func countWritten(_ frame: ByteBuffer, isOwn: Bool = false) -> EventLoopPromise<Void>? {
        let bytes = frame.readableBytes
        guard bytes >= Self.countWrittenFrom || (isOutputCopied && !isOwn && bytes > Self.shareAbove) else {
            return nil
        }
        let written = loop.eventLoop.makePromise(of: Void.self)
        let backlog = ensureBacklog()
        if isOwn || isOutputCopied {
            backlog.writtenBytes &+= bytes
            written.futureResult.whenComplete { _ in
                self.backlog?.writtenBytes &-= bytes
                self.measureMemory()
            }
        } else {
            let place = frame.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
            backlog.sharedBytes &+= bytes
            loop.holdsShared(place, bytes: bytes)
            written.futureResult.whenComplete { _ in
                self.backlog?.sharedBytes &-= bytes
                self.loop.releasesShared(place)
                self.measureMemory()
            }
        }
        measureMemory()
        return written
    }

    /// Sets the bytes of incomplete or unexamined frames that the handler holds.
    func unreadHolds(_ bytes: Int) {
        guard bytes != unreadBytes else { return }
        unreadBytes = bytes
        measureMemory()
    }

    /// Sets the approximate number of bytes that the gateway keeps for the peer: messages that wait, or that may go to
    /// another member of a shared subscription.
    package func sessionHolds(_ bytes: Int) {
        let change = bytes &- sessionBytes
        guard change != 0 else { return }
        sessionBytes = bytes
        guard phase == .open else { return measureMemory() }
        // The memory is not measured again here, because these bytes change with each message.
        ownBytes &+= change
        heldBytes &+= change
        loop.heldChanged(by: change)
    }

    /// Sets the number of users whose presence the connection watches.
    func watches(_ count: Int) {
        let bytes = count &* DeviceRegistry.bytesOfWatched
        guard bytes != backlog?.watchedBytes ?? 0 else { return }
        ensureBacklog().watchedBytes = bytes
        measureMemory()
    }

    /// Frees memory by dropping the waiting frames that may be dropped. Ends the connection if more than half of the
    /// memory remains.
    func payForMemory() {
        guard phase == .open, heldBytes > 0 else { return }
        let before = heldBytes
        listener.metrics.dropped(queue.dropWhatMayGo())
        measureMemory()
        if heldBytes > before / 2 { end(.memory) }
        measureMemory()
        loop.reclaimer.budget.gaveBack(before - heldBytes)
    }
}
