// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHPACK
import NIOHTTP2

/// Sends one request on its stream, and puts the answer together.
///
/// The number of frames and of bytes of an answer is bounded. A status must be a number from 200 to 599, after any
/// number of interim ones (1xx).
final class HTTP2PostHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// The most frames of an answer. Many small frames cost much for few bytes.
    static let maxFrames = 1_000

    private let request: HTTP2Request
    private let answer: EventLoopPromise<PushHTTPClient.Answer>
    private var frames = 0
    private var status: Int?
    private var headers: [String: String] = [:]
    private var body = ByteBuffer()

    init(_ request: HTTP2Request, _ answer: EventLoopPromise<PushHTTPClient.Answer>) {
        self.request = request
        self.answer = answer
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        // If the answer fails elsewhere (no answer in time, cancelled), the stream is reset.
        answer.futureResult.whenComplete { _ in channel.close(promise: nil) }
        context.write(wrapOutboundOut(.headers(.init(headers: request.head))), promise: nil)
        let body = HTTP2Frame.FramePayload.Data(data: .byteBuffer(request.body), endStream: true)
        context.writeAndFlush(wrapOutboundOut(.data(body)), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        frames += 1
        guard frames <= Self.maxFrames else { return fail("it has more than \(Self.maxFrames) frames") }
        switch unwrapInboundIn(data) {
        case .headers(let frame):
            if status == nil {
                guard let status = Self.status(of: frame.headers) else { return fail("it has no valid status") }
                if status >= 200 { begin(status, frame.headers) }
            }
            if frame.endStream { finish() }
        case .data(let frame):
            guard status != nil else { return fail("its body is before its head") }
            if case .byteBuffer(let bytes) = frame.data { body.writeImmutableBuffer(bytes) }
            if frame.endStream || body.readableBytes >= PushHTTPClient.maxBodyBytes { finish() }
        case .rstStream: answer.fail(HTTP2Failure.connectionClosed)
        default: break
        }
    }

    /// - Returns: the number of a status, which has three digits; nil: there is no such status.
    private static func status(of headers: HPACKHeaders) -> Int? {
        guard let text = headers.first(name: ":status"), text.utf8.count == 3,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let status = Int(text),
            (100..<600).contains(status)
        else { return nil }
        return status
    }

    private func begin(_ status: Int, _ fields: HPACKHeaders) {
        self.status = status
        for (name, value, _) in fields where !name.hasPrefix(":") { headers[name.lowercased()] = value }
    }

    private func finish() {
        guard let status else { return fail("it ends before its head") }
        answer.succeed(.init(status: status, headers: headers, body: Data(buffer: body)))
    }

    private func fail(_ reason: String) { answer.fail(HTTP2Failure.badAnswer(reason)) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        answer.fail(HTTP2Failure.connectionClosed)
        context.fireChannelInactive()
    }
}

@available(*, unavailable)
extension HTTP2PostHandler: Sendable {}
