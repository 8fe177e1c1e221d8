// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOHTTP1

/// Closes an HTTP/1.1 connection whose peer sends more bytes for one request than any answer of a push service has. A
/// limit for the body alone would leave heads, trailers and interim answers (1xx) unbounded.
///
/// This handler is the first in the pipeline, so with TLS it counts encrypted bytes.
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

/// Drops interim answers (1xx); ``AnswerLimitHandler`` limits their bytes. Closes an HTTP/1.1 connection whose peer
/// answers with a status that is not valid, or that changes the protocol (101). Some of these statuses would make
/// AsyncHTTPClient end the process.
final class AnswerStatusHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var isBroken = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isBroken else { return }
        guard case .head(let head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        switch head.status.code {
        case 100, 102..<200: break
        case 200..<600: context.fireChannelRead(data)
        default:
            isBroken = true
            context.fireErrorCaught(PushHTTPFailure.badAnswer("its status is \(head.status.code)"))
            context.close(promise: nil)
        }
    }
}

@available(*, unavailable)
extension AnswerStatusHandler: Sendable {}
