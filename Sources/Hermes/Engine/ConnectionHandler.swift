// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Passes a channel's events to its driver, on the event loop that both use.
final class ConnectionHandler<Link: ConnectionLink>: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// Weak, so that an opening connection does not keep an abandoned client alive.
    private weak var driver: ConnectionDriver<Link>?
    /// The number of this connection in the driver.
    private let attempt: UInt64

    init(driver: ConnectionDriver<Link>, attempt: UInt64) {
        self.driver = driver
        self.attempt = attempt
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let channel = context.channel
        present?.assumeIsolated { $0.bytesReceived(bytes, on: channel) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        present?.assumeIsolated { $0.flush() }
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A server that closed its output counts as disconnected.
        if case .some(.inputClosed) = event as? ChannelEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let channel = context.channel
        present?.assumeIsolated { $0.errorCaught(error, on: channel) }
        context.close(promise: nil)
    }

    /// The driver; nil if it has abandoned this connection or no longer exists.
    private var present: ConnectionDriver<Link>? {
        guard let driver, driver.assumeIsolated({ $0.attempt }) == attempt else { return nil }
        return driver
    }
}
