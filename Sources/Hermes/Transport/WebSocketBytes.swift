// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOWebSocket

/// Translates between WebSocket frames and the bytes in them. Answers pings and the closing handshake. If the server
/// breaks the standard, the connection ends with an error that names the breach.
///
/// The state is used only on the channel's event loop. The handler buffers no part of a message, even if the message
/// has many frames.
final class WebSocketBytes: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = WebSocketFrame

    /// The largest number of frames without content in a row. Such frames carry no data, but cost time.
    private static let maxEmptyFrames = 1_000

    /// Whether a message has begun and has not ended.
    private var isInMessage = false
    private var furtherFrames = 0
    private var isOver = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        let frame = unwrapInboundIn(data)
        do throws(HermesClientError) {
            try take(frame, context)
        } catch {
            isOver = true
            context.fireErrorCaught(error)
        }
    }

    private func take(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) throws(HermesClientError) {
        guard frame.maskKey == nil else { throw Self.violation("masked a frame (RFC 6455, section 5.1)") }
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            throw Self.violation("set a reserved bit of a frame (RFC 6455, section 5.2)")
        }
        switch frame.opcode {
        case .binary, .continuation:
            guard isInMessage == (frame.opcode == .continuation) else {
                throw Self.violation("mixed up the parts of its messages (RFC 6455, section 5.4)")
            }
            isInMessage = !frame.fin
            guard frame.data.readableBytes > 0 else {
                furtherFrames += 1
                guard furtherFrames <= Self.maxEmptyFrames else { throw Self.violation("sends frames without content") }
                return
            }
            furtherFrames = 0
            context.fireChannelRead(wrapInboundOut(frame.data))
        case .ping:
            // If the server does not read, skip the pong. A later pong also answers this ping (RFC 6455, section
            // 5.5.3).
            if context.channel.isWritable { write(context, .pong, frame.data) }
        case .connectionClose:
            isOver = true
            write(context, .connectionClose, frame.data)
            if let error = Self.error(ofClose: frame.data) { return context.fireErrorCaught(error) }
            context.close(promise: nil)
        case .pong:
            return
        default:
            // MQTT is never text [MQTT-6.0.0-1], and this client asks for the binary form of the native protocol.
            throw Self.violation("sent a frame that is not binary")
        }
    }

    /// Returns the error for an abnormal close, from the code of the close frame (RFC 6455, section 7.4.1); nil if the
    /// close is normal.
    private static func error(ofClose data: ByteBuffer) -> HermesClientError? {
        var data = data
        switch data.readInteger(as: UInt16.self) {
        case nil, 1000, 1001, 1005, 1006: return nil
        case 1009:
            return HermesClientError(.frameTooLong, "the server closed the WebSocket (1009): a message was too long")
        case .some(let code):
            let reason = String(validating: data.readableBytesView, as: UTF8.self) ?? ""
            let text = "the server closed the WebSocket (\(code))"
            return HermesClientError(.kicked, reason.isEmpty ? text : "\(text): \(reason)")
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? NIOWebSocketError else { return context.fireErrorCaught(error) }
        isOver = true
        let what =
            switch error {
            case .invalidFrameLength: "announced a frame longer than the protocol allows"
            case .fragmentedControlFrame: "cut a control frame in parts (RFC 6455, section 5.5)"
            case .multiByteControlFrameLength: "sent a control frame of more than 125 bytes (RFC 6455, section 5.5)"
            }
        context.fireErrorCaught(Self.violation(what))
    }

    private static func violation(_ what: String) -> HermesClientError {
        HermesClientError(.protocolViolation, "the WebSocket server \(what)")
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let frame = WebSocketFrame(fin: true, opcode: .binary, maskKey: .random(), data: unwrapOutboundIn(data))
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    private func write(_ context: ChannelHandlerContext, _ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
