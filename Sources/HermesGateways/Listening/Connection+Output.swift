// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Logging
package import NIOCore

/// Output. Small frames are copied into one buffer, which is written once in each tick. A tick is one pass of the
/// event loop. ``LoopContext`` flushes all connections that have output. The connections of crowds come last.
/// Connections for which there is no time wait for later turns.
///
/// Measurements showed that copying small frames costs half as much as one write for each frame. Large frames are not
/// copied, so that connections can share them. While the peer does not read, frames wait in the ``OutboundQueue``. If
/// the queue overflows, or if the peer reads nothing for too long (``ConnectionLimits/stuck``), the connection ends
/// without a farewell.
extension Connection {
    /// The size above which frames are written without a copy, in bytes. A copy of 4 KiB costs about as much as one
    /// more write in NIO.
    package static let shareAbove = PublicationBatch.copiedUpTo
    /// The size at which the collected bytes are written before the tick ends. It is below NIO's high-water mark of 64
    /// KiB, so that a burst does not make a reading peer look stuck.
    static let writeAbove = 32_768

    /// Whether written bytes go out soon; false while the peer does not read.
    package var keepsUp: Bool { isWritable && queue.isEmpty }

    /// Whether NIO has taken everything that was written.
    var hasNothingToWrite: Bool {
        keepsUp && pending.readableBytes == 0 && !hasUnflushedWrites && writtenMark == nil && heldWrites == 0
    }

    /// Whether the queue is at most half full. If so, it has room for a further frame that must not be dropped,
    /// whatever the frame's size.
    package var hasRoom: Bool { queue.bytes <= listener.limits.outboundQueueBytes / 2 }

    /// Writes an answer of any length when the queue has room: at once, or after the peer has read enough of the
    /// output that waits. Without this wait, a long answer could be added to a queue that is already filled from the
    /// peer's inbox. A peer that reads steadily would then count as a slow reader. The peer's next requests must be
    /// held meanwhile.
    ///
    /// - Parameter bytes: the approximate memory of the answer.
    func whenRoom(holding bytes: Int, _ write: @escaping () -> Void) {
        guard !hasRoom || backlog?.waitingAnswers.isEmpty == false, phase == .open else { return write() }
        requestStarted(bytes: bytes)
        ensureBacklog().waitingAnswers.append { [self] in
            write()
            requestAnswered(bytes: bytes)
        }
    }

    /// Whether frames may wait in the queue as one unit. The queue can drop a unit only as a whole, so a unit must be
    /// only a small part of the queue.
    package func isWorthKeepingTogether(_ frames: ByteBuffer) -> Bool {
        frames.readableBytes <= listener.limits.outboundQueueBytes / 8
    }

    /// Encodes a frame directly into the outbound buffer. If the encoder throws, nothing is written.
    ///
    /// - Parameters:
    ///   - kind: the class that decides how early the frame is dropped if the peer does not keep up.
    ///   - count: the number of frames that are encoded.
    package func write(
        _ kind: Publication.DropClass = .control,
        frames count: Int = 1,
        _ encode: (inout ByteBuffer) throws -> Void
    ) {
        guard phase == .open else { return }
        guard isWritable, queue.isEmpty else {
            var frame = ByteBuffer()
            guard encodes(encode, into: &frame) else { return }
            return enqueue(frame, nil, kind, frames: count)
        }
        if pending.storageCapacity == 0 { pending = loop.takeBuffer() }
        guard encodes(encode, into: &pending) else { return }
        tally.framesOut += count
        wrote()
    }

    /// Writes an entry of the inbox. The user's other devices on this loop share the encoding of a long entry.
    ///
    /// - Parameters:
    ///   - reader: the owner of the inbox.
    ///   - form: the name of the encoding. Calls with the same entry, reader and form must encode the same bytes.
    func write(
        _ entry: InboxEntry,
        for reader: UserID,
        form: String,
        _ encode: (inout ByteBuffer) throws -> Void
    ) {
        guard phase == .open else { return }
        guard EncodedEntries.keeps(entry) else { return write(.control, encode) }
        do {
            write(.control, frame: try loop.entries.frame(.init(reader: reader, seq: entry.seq, form: form), encode))
        } catch {
            listener.logger.error("an entry could not be encoded", metadata: ["error": "\(error)"])
        }
    }

    /// Writes a complete frame, or several adjacent frames. Connections may share the bytes. These frames stay
    /// together in the queue.
    ///
    /// - Parameter body: the rest of the frame, which connections may share. `frame` is then only the beginning of
    ///   the frame, and no other connection shares it.
    package func write(
        _ kind: Publication.DropClass = .control,
        frame: ByteBuffer,
        sharing body: ByteBuffer? = nil,
        count: Int = 1
    ) {
        guard phase == .open else { return }
        guard isWritable, queue.isEmpty else { return enqueue(frame, body, kind, frames: count) }
        append(frame, body, frames: count)
    }

    /// Copies a small frame to the output of this tick, without touching a reference count.
    ///
    /// - Returns: false if the frame was not copied. It must then be written as a buffer, because it may have to wait
    ///   in the queue.
    @inline(__always)
    package func writeNow(_ frame: UnsafeRawBufferPointer) -> Bool {
        guard phase == .open, isWritable, queue.isEmpty, frame.count <= Self.shareAbove else { return false }
        if pending.storageCapacity == 0 { pending = loop.takeBuffer() }
        pending.writeBytes(frame)
        tally.framesOut += 1
        wrote()
        return true
    }

    /// Writes a shared frame after `patch` has changed a few bytes near its beginning. The frame is never dropped.
    ///
    /// - Parameters:
    ///   - frame: the shared bytes.
    ///   - head: the number of bytes at the beginning that may be changed; nil if all bytes may be changed. This is
    ///     evaluated only for a long frame, whose other bytes are shared.
    ///   - count: the number of frames.
    ///   - patch: gets the buffer and the frame's offset in the buffer. It must not change the buffer's length.
    package func write(
        patching frame: ByteBuffer,
        head: @autoclosure () -> Int? = nil,
        frames count: Int = 1,
        _ patch: (inout ByteBuffer, Int) -> Void
    ) {
        guard phase == .open else { return }
        guard isWritable, queue.isEmpty, frame.readableBytes <= Self.writeAbove else {
            var rest = frame
            let isShared = frame.readableBytes > Self.writeAbove && frame.isWorthKeeping
            let own = rest.readSlice(length: isShared ? min(head() ?? .max, frame.readableBytes) : frame.readableBytes)
            var copy = ByteBuffer(bytes: (own ?? frame).readableBytesView)
            patch(&copy, 0)
            return write(frame: copy, sharing: rest.readableBytes > 0 ? rest : nil, count: count)
        }
        if pending.storageCapacity == 0 { pending = loop.takeBuffer() }
        let start = pending.writerIndex
        pending.writeImmutableBuffer(frame)
        patch(&pending, start)
        tally.framesOut += count
        wrote()
    }

    private func encodes(_ encode: (inout ByteBuffer) throws -> Void, into buffer: inout ByteBuffer) -> Bool {
        let start = buffer.writerIndex
        do {
            try encode(&buffer)
            return true
        } catch {
            buffer.moveWriterIndex(to: start)
            listener.logger.error("a frame could not be encoded", metadata: ["error": "\(error)"])
            return false
        }
    }

    private func append(
        _ frame: ByteBuffer,
        _ body: ByteBuffer?,
        frames count: Int,
        sharingAbove bytes: Int = shareAbove
    ) {
        tally.framesOut += count
        append(frame, sharingAbove: bytes)
        if let body { append(body, sharingAbove: bytes) }
    }

    private func append(_ frame: ByteBuffer, sharingAbove bytes: Int) {
        if frame.readableBytes <= bytes {
            if pending.storageCapacity == 0 { pending = loop.takeBuffer() }
            pending.writeImmutableBuffer(frame)
            wrote()
        } else {
            inWrite { writePending() }
            tally.bytesOut += frame.readableBytes
            hasUnflushedWrites = true
            guard !isOutputCut else { return inWrite { writeInPieces(frame) } }
            inWrite { context?.write(NIOAny(frame), promise: context == nil ? nil : countWritten(frame)) }
            loop.wroteLong(frame.readableBytes)
            markDirty()
        }
    }

    /// The largest number of bytes that TLS gets at once.
    private static let pieceBytes = 65_536

    private func writeInPieces(_ frame: ByteBuffer) {
        guard let context else { return }
        var rest = frame
        while let piece = rest.readSlice(length: min(rest.readableBytes, Self.pieceBytes)), piece.readableBytes > 0 {
            context.writeAndFlush(NIOAny(piece), promise: countWritten(piece))
        }
        hasUnflushedWrites = false
    }

    private func wrote() {
        if pending.readableBytes >= Self.writeAbove {
            inWrite { flushNow() }
        } else {
            markDirty()
        }
    }

    /// Sets ``isWriting`` during a write, because NIO may report a change of writability before the write returns.
    private func inWrite(_ body: () -> Void) {
        let isNested = isWriting
        isWriting = true
        body()
        isWriting = isNested
    }

    private func markDirty() {
        guard !isDirty else { return }
        if loop.isServingCrowd {
            guard !isDirtyWithCrowd else { return }
            isDirtyWithCrowd = true
            loop.markDirtyWithCrowd(self)
        } else {
            isDirty = true
            loop.markDirty(self)
        }
    }

    private func enqueue(_ frame: ByteBuffer, _ body: ByteBuffer?, _ kind: Publication.DropClass, frames count: Int) {
        let limit = listener.limits.outboundQueueBytes
        switch queue.append(frame, sharing: body, kind, frameCount: count, limit: limit) {
        case .queued: break
        case .queuedDropping(let dropped): listener.metrics.dropped(dropped)
        case .refused: listener.metrics.refused(kind, count)
        case .overflow: end(.slowReader)
        }
        measureMemory()
    }

    /// Requests a call to ``ConnectionEvents/written(_:)`` after the operating system has taken everything written so
    /// far. A later request replaces a request that waits.
    package func reportWritten(_ mark: UInt64) {
        guard phase == .open else { return }
        ensureBacklog().writtenMark = mark
        markDirty()
    }

    // MARK: Flushing

    /// Writes the output at the end of the tick.
    func flush() {
        isDirty = false
        flushNow()
    }

    /// Writes the output like ``flush()``, but together with a crowd: the very many subscribers on this loop that got
    /// one publication. The output may have been written earlier in the tick.
    func flushWithCrowd() {
        isDirtyWithCrowd = false
        flushNow()
    }

    private func flushNow() {
        guard let context else { return }
        let isWanted = pending.readableBytes > 0 || writtenMark != nil && queue.isEmpty
        guard isWanted, heldWrites == 0 || pending.readableBytes >= Self.writeAbove else {
            if isWanted { measureMemory() }
            return flushWrites(context)
        }
        let mustHold = heldWrites > 0 || isBehind(context)
        hasUnflushedWrites = false
        let mark = queue.isEmpty ? writtenMark : nil
        let out = takePending()
        var promise: EventLoopPromise<Void>?
        if let mark {
            backlog?.writtenMark = nil
            let gone = loop.eventLoop.makePromise(of: Void.self)
            gone.futureResult.whenSuccess { self.events?.written(mark) }
            promise = gone
        } else if !mustHold {
            promise = countWritten(out, isOwn: true)
        }
        if mustHold { promise = hold(out, promise) }
        context.writeAndFlush(NIOAny(out), promise: promise)
        loop.giveBack(out)
    }

    private func flushWrites(_ context: ChannelHandlerContext) {
        guard hasUnflushedWrites else { return }
        hasUnflushedWrites = false
        context.flush()
    }

    /// The number of small flushes between two checks of NIO's buffer (``isBehind(_:)``). A check costs about a tenth
    /// of a small flush.
    static let flushesPerLook = 8
    /// The bytes between two checks of NIO's buffer. A flush counts as the size of its buffer, but at least as
    /// ``shareAbove`` bytes.
    private static let bytesPerLook = flushesPerLook * shareAbove

    /// Whether a check has shown that the operating system has not taken all output. This is checked only at every
    /// eighth flush, or sooner if the buffers are large, so that at most ``bytesPerLook`` bytes can wait uncounted.
    private func isBehind(_ context: ChannelHandlerContext) -> Bool {
        bytesSinceLook &+= max(pending.storageCapacity, Self.shareAbove)
        guard bytesSinceLook >= Self.bytesPerLook else { return false }
        bytesSinceLook = 0
        flushWrites(context)
        let waiting = try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)
        return waiting ?? 0 > 0
    }

    /// Counts a write that waits until the operating system has taken earlier output. While any writes are held,
    /// further output is collected. After they are done, output is again written without delay.
    ///
    /// - Returns: the promise for the write.
    private func hold(_ out: ByteBuffer, _ promise: EventLoopPromise<Void>?) -> EventLoopPromise<Void> {
        let bytes = out.storageCapacity
        heldWrites &+= 1
        ensureBacklog().heldWriteBytes &+= bytes
        measureMemory()
        let written = promise ?? loop.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { [self] _ in
            heldWrites &-= 1
            backlog?.heldWriteBytes &-= bytes
            measureMemory()
            guard heldWrites == 0 else { return }
            bytesSinceLook = Self.bytesPerLook
            if pending.readableBytes > 0 || writtenMark != nil { markDirty() }
        }
        return written
    }

    private func writePending() {
        guard pending.readableBytes > 0 else { return }
        hasUnflushedWrites = true
        guard let context else { return }
        let out = takePending()
        context.write(NIOAny(out), promise: countWritten(out, isOwn: true))
    }

    private func takePending() -> ByteBuffer {
        var out = ByteBuffer()
        swap(&out, &pending)
        tally.bytesOut += out.readableBytes
        return out
    }

    /// Handles a change of writability: NIO's buffer for this channel has risen above the high-water mark, or has
    /// fallen below the low-water mark.
    func writabilityChanged(_ isWritable: Bool, pausesReading: Bool) {
        self.isWritable = isWritable
        stuckChanged(!isWritable)
        guard isWritable else {
            if pausesReading { pause(.output) }
            return
        }
        guard isWriting else { return goOn() }
        // NIO reports the change in the middle of a write. Other frames must not be written between the pieces of that
        // write. During a write, the protocol's side expects neither requests for more output nor frames.
        guard !goesOnLater else { return }
        goesOnLater = true
        loop.eventLoop.execute { [self] in
            goesOnLater = false
            if self.isWritable { goOn() }
        }
    }

    private func goOn() {
        while isWritable, let waiting = queue.popFirst() {
            append(waiting.bytes, waiting.body, frames: waiting.frameCount)
        }
        measureMemory()
        while hasRoom, let backlog, !backlog.waitingAnswers.isEmpty { backlog.waitingAnswers.removeFirst()() }
        guard keepsUp else { return }
        if writtenMark != nil { markDirty() }
        resume(.output)
        if phase == .open { events?.becameWritable() }
    }

    /// The size above which the last frames of a connection are written without a copy. Thousands of connections may
    /// end together, and their copies count against no budget.
    private static let shareLastAbove = 256

    /// Writes everything that waits, then closes the sending direction, so that the peer gets the last bytes even if
    /// the server has not read everything from the peer. In that case, a plain close would reset the connection and
    /// could destroy the last bytes.
    func writeOutForGood() {
        guard let context else { return }
        let bytes = isOutputCopied ? Self.shareAbove : Self.shareLastAbove
        while let waiting = queue.popFirst() {
            append(waiting.bytes, waiting.body, frames: waiting.frameCount, sharingAbove: bytes)
        }
        measureMemory()
        let written = loop.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in self.closeOutput() }
        context.writeAndFlush(NIOAny(takePending()), promise: written)
        hasUnflushedWrites = false
    }

    private func closeOutput() {
        context?.close(mode: .output, promise: nil)
    }
}

extension ByteBuffer {
    /// Whether the readable bytes are a large part of the memory that the buffer keeps alive. If not, it is better to
    /// keep a copy.
    var isWorthKeeping: Bool { storageCapacity / 4 <= readableBytes }
}
