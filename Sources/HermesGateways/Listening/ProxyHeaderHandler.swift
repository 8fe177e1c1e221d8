// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
package import Logging
package import NIOCore

/// Waits for the PROXY header, then adds the connection's other handlers, including TLS, and removes itself.
///
/// State: confined to the channel's event loop. A connection without a valid header is closed without sending anything.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private let patience: Duration
    private let logger: Logger
    private let serve: (any Channel, SocketAddress?) throws -> Void
    private var bytes = ByteBuffer()
    private var deadline: Scheduled<Void>?
    private var isDone = false

    /// - Parameters:
    ///   - patience: the time limit for the header.
    ///   - serve: adds the connection's handlers. It gets the client's address, or nil if the proxy gave none.
    package init(patience: Duration, logger: Logger, serve: @escaping (any Channel, SocketAddress?) throws -> Void) {
        self.patience = patience
        self.logger = logger
        self.serve = serve
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: TimeAmount(patience)) { channel.close(promise: nil) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    package func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        var read = unwrapInboundIn(data)
        if bytes.readableBytes == 0 {
            swap(&bytes, &read)
        } else {
            // The bytes are bounded: they are at most one read longer than the longest header.
            bytes.writeBuffer(&read)
        }
        let header: ProxyHeader
        do throws(ProxyHeader.Malformation) {
            guard let next = try ProxyHeader.next(from: &bytes) else { return }
            header = next
        } catch {
            return refuse(context, "\(error)")
        }
        isDone = true
        deadline?.cancel()
        do {
            try serve(context.channel, Self.address(header.source))
        } catch {
            return refuse(context, "\(error)")
        }
        if bytes.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(bytes)) }
        context.fireChannelReadComplete()
        bytes = ByteBuffer()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func refuse(_ context: ChannelHandlerContext, _ reason: String) {
        isDone = true
        logger.debug("connection refused before its proxy header", metadata: ["reason": "\(reason)"])
        context.close(promise: nil)
    }

    private static func address(_ source: ProxyHeader.Source) throws -> SocketAddress? {
        switch source {
        case .connection: nil
        case .v4(let address, let port), .v6(let address, let port):
            try SocketAddress(packedIPAddress: ByteBuffer(bytes: address), port: Int(port))
        }
    }
}

@available(*, unavailable)
extension ProxyHeaderHandler: Sendable {}
