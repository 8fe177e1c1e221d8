// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// The code with which a WebSocket will be closed. This is an outbound event.
struct WebSocketGoodbye: Sendable {
    let code: UInt16
}

/// The number of frames beyond those that the messages need. This is an inbound event, so that the connection pays for
/// these frames.
struct FurtherWebSocketFrames: Sendable {
    let count: Int
}

/// The handler before ``ConnectionHandler`` for a protocol over WebSocket. It turns messages into bytes, and bytes into
/// messages. It answers pings, and sends a close frame at the end.
///
/// State: confined to the channel's event loop. Messages of any length pass through it without being buffered.
package final class WebSocketHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private var reader: any WebSocketReading
    /// An incomplete header or control frame; otherwise empty.
    private var unread = ByteBuffer()
    /// The payload of the last ping that has no answer yet.
    private var unansweredPing: ByteBuffer?
    /// Whether the operating system has not taken the last pong yet.
    private var isPongUnderWay = false
    private var hasSaidGoodbye = false
    private var goodbyeCode: UInt16 = 1000
    /// Whether all input is ignored, because the peer has sent a close frame or has violated the WebSocket protocol.
    private var isOver = false

    /// Finds the message at the beginning of written bytes.
    private let message: @Sendable (ByteBuffer) -> WebSocketMessage

    package init(_ reader: any WebSocketReading, message: @escaping @Sendable (ByteBuffer) -> WebSocketMessage) {
        self.reader = reader
        self.message = message
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        var bytes = unwrapInboundIn(data)
        if unread.readableBytes > 0 {
            unread.writeBuffer(&bytes)
            swap(&bytes, &unread)
        }
        defer {
            chargeFurtherFrames(context)
            answerPing(context)
        }
        var payload = ByteBuffer()
        do throws(WebSocketInput.Failure) {
            while let control = try reader.take(from: &bytes, into: &payload) {
                handle(control, context, &payload)
                guard !isOver else { return }
            }
        } catch {
            deliver(&payload, context)
            return end(context, error.rawValue)
        }
        deliver(&payload, context)
        // The bytes are copied, because NIO reuses the read buffer.
        unread = bytes.readableBytes > 0 ? ByteBuffer(buffer: bytes.slice()) : ByteBuffer()
    }

    private func chargeFurtherFrames(_ context: ChannelHandlerContext) {
        let count = reader.takeFurtherFrames()
        guard count > 0, !isOver else { return }
        context.fireUserInboundEventTriggered(FurtherWebSocketFrames(count: count))
    }

    private func deliver(_ payload: inout ByteBuffer, _ context: ChannelHandlerContext) {
        guard payload.readableBytes > 0 else { return }
        var out = ByteBuffer()
        swap(&out, &payload)
        context.fireChannelRead(wrapInboundOut(out))
    }

    private func handle(
        _ control: WebSocketInput.Control,
        _ context: ChannelHandlerContext,
        _ payload: inout ByteBuffer
    ) {
        switch control {
        case .pong: break
        case .ping(let text): unansweredPing = text
        case .close(let code):
            deliver(&payload, context)
            answerPing(context)
            end(context, code ?? 1000)
        }
    }

    /// Answers the last ping. One pong also answers all earlier pings (RFC 6455, section 5.5.3). So at most one pong
    /// waits for a peer that does not read.
    private func answerPing(_ context: ChannelHandlerContext) {
        guard !isPongUnderWay, context.channel.isWritable, !hasSaidGoodbye, let text = unansweredPing else { return }
        unansweredPing = nil
        var pong = context.channel.allocator.buffer(capacity: text.readableBytes + WebSocketOutput.maxHeaderBytes)
        WebSocketOutput.writePong(text, into: &pong)
        isPongUnderWay = true
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [self] result in
            isPongUnderWay = false
            if case .success = result { answerPing(context) }
        }
        context.writeAndFlush(wrapOutboundOut(pong), promise: written)
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        answerPing(context)
        context.fireChannelWritabilityChanged()
    }

    /// Sends a close frame, and closes the channel after the frame is written.
    private func end(_ context: ChannelHandlerContext, _ code: UInt16) {
        isOver = true
        unread = ByteBuffer()
        let channel = context.channel
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in channel.close(promise: nil) }
        if sayGoodbye(context, code, promise: written) {
            context.flush()
        } else {
            written.succeed()
        }
    }

    private func sayGoodbye(
        _ context: ChannelHandlerContext,
        _ code: UInt16,
        promise: EventLoopPromise<Void>? = nil
    ) -> Bool {
        guard !hasSaidGoodbye else { return false }
        hasSaidGoodbye = true
        var bytes = context.channel.allocator.buffer(capacity: WebSocketOutput.maxHeaderBytes)
        WebSocketOutput.writeClose(code, into: &bytes)
        context.write(wrapOutboundOut(bytes), promise: promise)
        return true
    }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var payload = unwrapOutboundIn(data)
        guard payload.readableBytes > 0 else { return context.write(data, promise: promise) }
        // Nothing follows a close frame (RFC 6455, section 5.5.1).
        guard !hasSaidGoodbye else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        let first = message(payload)
        guard first.skippedBytes + first.bytes >= payload.readableBytes else {
            return context.write(wrapOutboundOut(messages(of: &payload, context)), promise: promise)
        }
        payload.moveReaderIndex(forwardBy: min(first.skippedBytes, payload.readableBytes))
        var header = context.channel.allocator.buffer(capacity: WebSocketOutput.maxHeaderBytes)
        WebSocketOutput.writeHeader(of: payload.readableBytes, isText: first.isText, into: &header)
        context.write(wrapOutboundOut(header), promise: nil)
        context.write(wrapOutboundOut(payload), promise: promise)
    }

    /// Copies several messages into one buffer. They are copied because messages that are written together are usually
    /// short.
    private func messages(of payload: inout ByteBuffer, _ context: ChannelHandlerContext) -> ByteBuffer {
        var out = context.channel.allocator.buffer(capacity: payload.readableBytes * 2)
        while payload.readableBytes > 0 {
            let next = message(payload)
            payload.moveReaderIndex(forwardBy: min(next.skippedBytes, payload.readableBytes))
            let length = min(max(1, next.bytes), payload.readableBytes)
            guard var message = payload.readSlice(length: length) else { break }
            WebSocketOutput.writeHeader(of: length, isText: next.isText, into: &out)
            out.writeBuffer(&message)
        }
        return out
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch mode {
        case .output, .all: if sayGoodbye(context, goodbyeCode) { context.flush() }
        case .input: break
        }
        context.close(mode: mode, promise: promise)
    }

    package func triggerUserOutboundEvent(
        context: ChannelHandlerContext,
        event: Any,
        promise: EventLoopPromise<Void>?
    ) {
        guard let goodbye = event as? WebSocketGoodbye else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        goodbyeCode = goodbye.code
        promise?.succeed()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The HTTP port allows peers to close one direction. A WebSocket connection ends if its peer does this.
        if case .inputClosed? = event as? ChannelEvent { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }
}

@available(*, unavailable)
extension WebSocketHandler: Sendable {}
