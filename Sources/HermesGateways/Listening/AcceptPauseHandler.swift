// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Logging
import NIOCore
package import NIOPosix

/// Stops a listener from accepting connections for a second when the system has no file descriptor or memory left. It
/// never closes the listener.
///
/// NIO's `AcceptBackoffHandler` also delays reads. But it leaves the socket registered for reading, so the event loop
/// spins during the delay.
///
/// State: confined to the channel's event loop.
final class AcceptPauseHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    static let pause = TimeAmount.seconds(1)

    /// The least time between two log messages.
    private static let quiet = TimeAmount.seconds(60)

    private let logger: Logger
    private var loggedAt: NIODeadline?

    init(_ logger: Logger) { self.logger = logger }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError else { return context.fireErrorCaught(error) }
        // Other errors do not matter. For example, a peer may leave before its connection is accepted.
        guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else { return }
        let channel = context.channel
        try? channel.syncOptions?.setOption(.autoRead, value: false)
        log(error, on: context)
        // If the listener was closed meanwhile, the option cannot be set. This does not matter.
        context.eventLoop.scheduleTask(in: Self.pause) { try? channel.syncOptions?.setOption(.autoRead, value: true) }
    }

    private func log(_ error: IOError, on context: ChannelHandlerContext) {
        let now = context.eventLoop.now
        if let loggedAt, now - loggedAt < Self.quiet { return }
        loggedAt = now
        logger.warning(
            "no connection can be accepted",
            metadata: [
                "address": "\(context.channel.localAddress.map { "\($0)" } ?? "")", "error": "\(error)",
                "raise": "ulimit -Hn",
            ]
        )
    }
}

@available(*, unavailable)
extension AcceptPauseHandler: Sendable {}

extension ServerBootstrap {
    /// Makes the listener pause while the system has no file descriptor or memory for a further connection.
    package func pausingWithoutDescriptors(_ logger: Logger) -> ServerBootstrap {
        serverChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(AcceptPauseHandler(logger))
            }
        }
    }
}
