// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Closes an HTTP/1.1 connection whose peer sends more bytes for one request than any answer of a push service has. The
/// limit of the body alone would leave heads, trailers and interim answers (1xx) without end.
///
/// It is the first handler, so with TLS it counts encrypted bytes.
final class AnswerLimitHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData

    /// The largest number of bytes between two writes of a request.
    static let maxBytes = 1 << 20

    private var received = 0

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        received = 0
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += unwrapInboundIn(data).readableBytes
        guard received <= Self.maxBytes else { return context.close(promise: nil) }
        context.fireChannelRead(data)
    }
}

@available(*, unavailable)
extension AnswerLimitHandler: Sendable {}
