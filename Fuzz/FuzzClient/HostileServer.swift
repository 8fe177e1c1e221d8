// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import FuzzSupport
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A server on a port of this machine that says what was set before, and then closes.
final class HostileServer: Sendable {
    /// What the next connection gets.
    struct Script: Sendable {
        /// Sent one after the other: the first when the client has said something, each of the others when it has said more,
        /// or nothing for a while.
        var parts: [[UInt8]] = []
        /// In pieces of this many bytes.
        var pieceBytes = 4_096
        /// A request for a WebSocket is granted before all else.
        var grantsWebSocket = false
    }

    private let channel: any Channel
    private let script = NIOLockedValueBox(Script())

    var port: Int { channel.localAddress?.port ?? 0 }

    init(group: MultiThreadedEventLoopGroup) {
        let script = script
        do {
            channel = try ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        // Only the first connection of an input gets the bytes; a client that comes back finds nothing.
                        let mine = script.withLockedValue { script in
                            defer { script.parts = [] }
                            return script
                        }
                        try channel.pipeline.syncOperations.addHandler(Handler(mine))
                    }
                }
                .bind(host: "127.0.0.1", port: 0)
                .wait()
        } catch {
            broken("no port: \(error)")
        }
    }

    func set(_ script: Script) { self.script.withLockedValue { $0 = script } }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        /// So long the client may say nothing.
        private static let patience = TimeAmount.milliseconds(3)

        private var script: Script
        private var rest: ArraySlice<[UInt8]>
        private var timer: Scheduled<Void>?
        private var request = ""

        init(_ script: Script) {
            self.script = script
            rest = script.parts[...]
        }

        func channelActive(context: ChannelHandlerContext) {
            if rest.isEmpty { context.close(promise: nil) }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !script.grantsWebSocket else { return grant(unwrapInboundIn(data), context) }
            sendNext(context)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
        }

        func channelInactive(context: ChannelHandlerContext) { timer?.cancel() }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        private func sendNext(_ context: ChannelHandlerContext) {
            timer?.cancel()
            guard var bytes = rest.popFirst()?[...] else { return context.close(promise: nil) }
            while !bytes.isEmpty {
                let piece = bytes.prefix(script.pieceBytes)
                bytes = bytes.dropFirst(piece.count)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: piece)), promise: nil)
            }
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            timer = context.eventLoop.scheduleTask(in: Self.patience) {
                let (handler, context) = bound.value
                handler.sendNext(context)
            }
        }

        /// Answers the request for a WebSocket as RFC 6455, section 4.2.2 says.
        private func grant(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
            request += String(buffer: bytes)
            guard request.hasSuffix("\r\n\r\n") else { return }
            script.grantsWebSocket = false
            let fields = request.split(separator: "\r\n").map { $0.split(separator: ": ", maxSplits: 1) }
            let key = fields.first { $0.first?.lowercased() == "sec-websocket-key" }?.last ?? ""
            let hash = Insecure.SHA1.hash(data: Data("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8))
            let answer =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(Data(hash).base64EncodedString())\r\n"
                + "Sec-WebSocket-Protocol: hermes.v1\r\n\r\n"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }
}
