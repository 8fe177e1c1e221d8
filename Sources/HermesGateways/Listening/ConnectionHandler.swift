// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
package import NIOCore
import NIOTLS

/// The last handler in a connection's pipeline. It decodes bytes into frames for the protocol's side
/// (``GatewayConnection``), and passes channel events to ``Connection``. The side's `Decoder` splits the bytes into
/// frames.
package final class ConnectionHandler<Side: GatewayConnection>: ChannelDuplexHandler, ConnectionReader {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let connection: Connection
    private let side: Side
    // Exclusivity is unchecked here and below: these properties are used for each frame, on one loop, and a decoder
    // makes no callbacks.
    @exclusivity(unchecked)
    private var decoder: Side.Decoder
    @exclusivity(unchecked)
    private var hasFullLimit: Bool
    /// An incomplete frame, and bytes that arrived during a pause; otherwise empty.
    private var unread = ByteBuffer()
    /// Whether the next full read of a plain connection is followed by longer reads. Most connections never fill a read
    /// buffer, so a connection gets larger buffers only after a full read.
    private var awaitsFullRead = false
    /// Whether the side opens only after the TLS handshake, which is still to come.
    private var opensWithHandshake: Bool
    /// Whether bytes are being decoded into frames.
    private var isCutting = false
    /// Whether a read was requested during a pause.
    private var isReadWaiting = false
    /// Whether the peer has closed its side and its last bytes wait for the connection's turn.
    private var isInputClosed = false
    /// Whether the peer has closed its side and its last bytes are being examined.
    private var areLastWords = false
    /// The number of frames that were examined since ``doneSince``, plus their further cost. The count restarts with
    /// the first read that is ``TurnQueue/silence`` or more after ``doneSince``.
    @exclusivity(unchecked)
    private var done = 0
    private var doneSince: NIODeadline
    /// The time of the last read, or of the last end of a pause.
    private var lastReadAt: NIODeadline

    private var discardedBytes = 0

    /// The largest number of bytes that are read from a peer after its connection was ended. That many bytes may have
    /// been in transit.
    private static var maxDiscardedBytes: Int { 1 << 20 }

    /// The number of frames, plus their further cost (``RequestCost``), between two checks of whether the loop's turn
    /// has time left. A check costs as much as a small frame.
    private static var costPerLook: Int { 16 }
    /// The number of bytes between two checks of whether the loop's turn has time left.
    private static var bytesPerLook: Int { 8_192 }

    /// - Parameter isEncrypted: whether a TLS handshake comes first. If so, the side opens after the handshake, so that
    ///   nothing is written to a peer that never completes it.
    package init(connection: Connection, side: Side, isEncrypted: Bool = false) {
        self.connection = connection
        self.side = side
        hasFullLimit = connection.isAuthenticated
        decoder = side.makeDecoder(maxFrameBytes: Self.maxFrameBytes(of: connection))
        connection.events = side
        opensWithHandshake = isEncrypted
        // The arrival of a connection does not count as the end of a silence (``TurnQueue/silence``).
        lastReadAt = connection.loop.turnTime()
        doneSince = lastReadAt
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        connection.reader = self
        // The pipeline of a plain connection is not searched for TLS, because a search without a result is a large
        // part of the cost of accepting a connection.
        let mayHaveTLS = opensWithHandshake || connection.isWebSocket
        connection.isOutputCopied = mayHaveTLS && context.pipeline.syncOperations.hasTLS
        connection.isOutputCut = opensWithHandshake && connection.isOutputCopied
        connection.start(context)
        if hasFullLimit { allowLongReads() }
        if context.channel.isActive, !opensWithHandshake { side.opened() }
    }

    package func channelActive(context: ChannelHandlerContext) {
        if !opensWithHandshake { side.opened() }
        context.fireChannelActive()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if opensWithHandshake, case .handshakeCompleted? = event as? TLSUserEvent, connection.isOpen {
            opensWithHandshake = false
            guard PeerCertificateCheck(connection, context).passes() else { return context.close(promise: nil) }
            side.opened()
        }
        if case .inputClosed? = event as? ChannelEvent { inputClosed() }
        if let frames = event as? FurtherWebSocketFrames { connection.charge(.furtherFrames(frames.count)) }
        context.fireUserInboundEventTriggered(event)
    }

    package func handlerRemoved(context: ChannelHandlerContext) { connection.closed() }

    package func channelInactive(context: ChannelHandlerContext) {
        takeLastWords()
        connection.closed()
        unread = ByteBuffer()
        context.fireChannelInactive()
    }

    private func inputClosed() {
        if connection.waitsOnlyForTurn {
            isInputClosed = true
        } else {
            connection.loop.peerClosed(connection)
        }
    }

    /// Examines the bytes that arrived before the peer closed its side, if they have not been examined yet.
    private func takeLastWords() {
        guard !isCutting else { return }
        // Frames that waited only for the connection's turn are still handled. A peer that resets its connection may
        // lose some of them.
        let end = connection.loop.lastWordsEnd()
        areLastWords = true
        while connection.waitsOnlyForTurn, unread.readableBytes > 0, connection.loop.turnTime() < end {
            connection.takeTurn()
            guard connection.waitsOnlyForTurn else { break }
        }
        // If more frames are left than there is time for, the rest is ignored, because many connections may end at once
        // on a loop.
        var count = 0
        while connection.isOpen, let frame = try? decoder.next(from: &unread) {
            side.receivedLast(frame)
            count += 1
            if count.isMultiple(of: Self.lastFrames), connection.loop.turnTime() >= end { return }
        }
    }

    /// The number of last frames that are examined even if no time is left.
    private static var lastFrames: Int { 64 }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // After a reset or a failed handshake, nothing more can be sent on this connection.
        if opensWithHandshake, let reason = TLSProblem.ofHandshake(error) { connection.handshakeFailed(reason) }
        context.close(promise: nil)
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.writabilityChanged(context.channel.isWritable, pausesReading: Side.pausesReadingWhenStuck)
        context.fireChannelWritabilityChanged()
    }

    // MARK: Reading

    package func read(context: ChannelHandlerContext) {
        if connection.mayRead {
            context.read()
        } else {
            isReadWaiting = true
        }
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        // Each use of a stored property would change the reference count again.
        let connection = connection
        let loop = connection.loop
        connection.tally.bytesIn += bytes.readableBytes
        loop.heard(&lastReadAt, isConfirming: side.awaitsConfirmation)
        if lastReadAt - doneSince >= TurnQueue.silence {
            doneSince = lastReadAt
            done = 0
        }
        if awaitsFullRead, bytes.readableBytes >= ReadBuffers.leastBytes {
            awaitsFullRead = false
            connection.readsLong()
        }
        // Such a large read has most likely left further bytes unread.
        if bytes.readableBytes >= connection.longestRead / 2 { connection.inputIsBacklogged() }
        defer { if connection.sharesReadBuffers { loop.readBuffers.giveBack(bytes) } }
        guard connection.isOpen else { return discard(bytes.readableBytes, context) }
        connection.chargeLogin(bytes.readableBytes)
        guard connection.isOpen else { return }
        if unread.readableBytes > 0 {
            unread.writeBuffer(&bytes)
            cutUnread()
        } else {
            cut(&bytes)
            keep(bytes)
        }
    }

    /// Closes the connection of a peer that continues to send too much after the server has ended the connection.
    private func discard(_ bytes: Int, _ context: ChannelHandlerContext) {
        discardedBytes += bytes
        if discardedBytes > Self.maxDiscardedBytes { context.close(promise: nil) }
    }

    package func readOn() {
        // The input of an ended connection is not examined any more.
        if !connection.isOpen { unread = ByteBuffer() }
        if !isCutting, unread.readableBytes > 0 { cutUnread() }
        if isInputClosed, !connection.waitsOnlyForTurn {
            isInputClosed = false
            connection.loop.peerClosed(connection)
        }
        guard isReadWaiting, connection.mayRead else { return }
        isReadWaiting = false
        lastReadAt = connection.loop.turnTime()
        connection.context?.read()
    }

    private func cutUnread() {
        guard !isCutting else { return }
        var bytes = ByteBuffer()
        swap(&bytes, &unread)
        cut(&bytes)
        if connection.isOpen, bytes.readableBytes > bytes.storageCapacity / 2 {
            bytes.discardReadBytes()
            unread = bytes
            connection.unreadHolds(bytes.storageCapacity)
        } else {
            keep(bytes)
        }
    }

    /// Keeps the rest of a read in a separate buffer, because the read buffer is for the next read (``ReadBuffers``).
    private func keep(_ rest: ByteBuffer) {
        guard rest.readableBytes > 0, connection.isOpen else {
            unread = ByteBuffer()
            connection.unreadHolds(0)
            return
        }
        unread = ByteBuffer(buffer: rest.slice())
        connection.unreadHolds(unread.storageCapacity)
    }

    private func cut(_ bytes: inout ByteBuffer) {
        // A connection that has done little lately is served at once.
        let waits = done >= Self.costPerLook && !areLastWords
        if waits, connection.takesFrames, connection.loop.isOverTime { return connection.waitForTurn() }
        isCutting = true
        let before = connection.spent
        defer {
            isCutting = false
            done &+= connection.spent &- before
        }
        let rate = connection.listener.limits.requestsPerSecond
        let now = Side.hasRequestLimit ? connection.loop.uptime : .zero
        // One long frame may cause much work, so the time is checked first.
        var frames = waits && bytes.readableBytes >= Self.bytesPerLook ? Self.costPerLook : 0
        var spent = connection.spent
        var lookedAt = bytes.readerIndex
        while connection.takesFrames {
            if frames &+ (connection.spent &- spent) >= Self.costPerLook
                || bytes.readerIndex - lookedAt >= Self.bytesPerLook,
                bytes.readableBytes > 0
            {
                guard connection.loop.hasTime() else {
                    return areLastWords ? connection.pause(.turn) : connection.waitForTurn()
                }
                frames = 0
                spent = connection.spent
                lookedAt = bytes.readerIndex
            }
            raiseLimit()
            guard !Side.hasRequestLimit || connection.bucket.hasToken(rate: rate, burst: rate, now: now) else {
                return connection.throttle(for: connection.bucket.delay(rate: rate))
            }
            let frame: Side.Decoder.Frame
            do {
                guard let next = try decoder.next(from: &bytes) else { return }
                frame = next
            } catch {
                return connection.end(.malformed(error))
            }
            let count = frame.frameCount
            connection.tally.framesIn += count
            if Side.everyFrameIsLife { connection.touch() }
            if Side.hasRequestLimit {
                // The charge for the frame also counts as work.
                connection.pay(1 + RequestCost.bytes(frame.encodedBytes).units)
            } else {
                frames += count
                done &+= count
            }
            side.received(frame)
            if connection.givenBack > 0 {
                bytes.moveReaderIndex(to: max(0, bytes.readerIndex - connection.givenBack))
                connection.givenBack = 0
                frames = Self.costPerLook
            }
        }
    }

    /// Raises the frame limit after a login, before the next frame is decoded. A new decoder can replace the old one
    /// even inside a frame: the bytes of an unfinished frame are still in the buffer, and the new decoder examines them
    /// from the beginning.
    private func raiseLimit() {
        guard !hasFullLimit, connection.isAuthenticated else { return }
        hasFullLimit = true
        allowLongReads()
        decoder = side.makeDecoder(maxFrameBytes: Self.maxFrameBytes(of: connection))
    }

    private func allowLongReads() {
        guard connection.sharesReadBuffers else { return connection.readsLong() }
        awaitsFullRead = true
    }

    private static func maxFrameBytes(of connection: Connection) -> Int {
        let limit = connection.listener.maxFrameBytes(connection.isAuthenticated)
        return connection.isAuthenticated ? limit : min(limit, Side.maxLoginFrameBytes)
    }
}

@available(*, unavailable)
extension ConnectionHandler: Sendable {}
