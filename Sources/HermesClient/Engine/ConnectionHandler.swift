// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Passes what happens on a channel to its driver, on the loop that both live on.
final class ConnectionHandler<Link: ConnectionLink>: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let driver: ConnectionDriver<Link>

    init(driver: ConnectionDriver<Link>) { self.driver = driver }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        driver.assumeIsolated { $0.bytesReceived(bytes) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        driver.assumeIsolated { $0.flush() }
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A server that will send nothing more is as good as gone.
        if case .some(.inputClosed) = event as? ChannelEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let channel = context.channel
        driver.assumeIsolated { $0.errorCaught(error, on: channel) }
        context.close(promise: nil)
    }
}
