// Hermes
// SPDX-License-Identifier: Apache-2.0

import Logging
package import NIOCore
import NIOPosix
import NIOSSL

/// One listening socket of one protocol, and its connections.
package final class Listener: Sendable {
    /// The gateway's name.
    package let name: String
    /// Where it listens, with the port that was found if none was asked for.
    package let address: SocketAddress?
    private let state: ListenerState
    private let loops: LoopContexts
    private let channel: any Channel
    private let tls: TLSContextBox?

    private init(
        state: ListenerState,
        loops: LoopContexts,
        channel: any Channel,
        tls: TLSContextBox?
    ) {
        name = state.name
        address = channel.localAddress
        self.state = state
        self.loops = loops
        self.channel = channel
        self.tls = tls
    }

    /// The port it listens on.
    package var port: Int { address?.port ?? 0 }

    /// Open connections of this listener.
    package var openConnections: Int { state.openCount }

    /// Starts to listen for a protocol.
    ///
    /// - Parameter group: the event loops; the ones of `environment.loops`.
    /// - Throws: IOError if the address cannot be bound, NIOSSL's errors for a bad certificate.
    package static func start<G: Gateway>(
        _ type: G.Type,
        on settings: ListenerSettings,
        environment: GatewayEnvironment,
        group: any EventLoopGroup
    ) async throws -> Listener {
        let gateway = G(environment: environment)
        let tls = try settings.tls.map(TLSContextBox.init)
        let state = ListenerState(
            name: G.name,
            limits: environment.settings.limits,
            idleTimeout: gateway.idleTimeout,
            maxFrameBytes: gateway.maxFrameBytes,
            logger: environment.logger
        )
        let counter = environment.counter
        let loops = environment.loops
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // Out of file descriptors: wait a second before the next accept; never close the listener.
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptBackoffHandler(shouldForwardIOErrorCaught: false)
                    )
                }
            }
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            // NIO keeps a connection's read buffers: small for those that say little, growing where much comes.
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 1_024, maximum: 65_536)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try accept(channel, for: gateway, state: state, counter: counter, loops: loops, tls: tls)
                }
            }
            .bind(host: settings.host, port: settings.port)
            .get()
        return Listener(state: state, loops: loops, channel: channel, tls: tls)
    }

    private static func accept<G: Gateway>(
        _ channel: any Channel,
        for gateway: G,
        state: ListenerState,
        counter: ConnectionCounter,
        loops: LoopContexts,
        tls: TLSContextBox?
    ) throws {
        guard let loop = loops[channel.eventLoop], !state.isDraining else { throw RefusedConnection() }
        let address = ConnectionCounter.Address(channel.remoteAddress)
        if let refusal = counter.add(address) {
            state.metrics.refused(refusal)
            throw RefusedConnection()
        }
        channel.closeFuture.whenComplete { _ in counter.remove(address) }
        if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.current())) }
        let connection = Connection(
            loop: loop,
            listener: state,
            requiresAuthentication: G.Session.requiresAuthentication
        )
        let session = gateway.makeSession(for: connection)
        let handler = ConnectionHandler<G.Session>(
            connection: connection,
            session: session,
            isEncrypted: tls != nil
        )
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    /// Reads the certificate again, for new connections; does nothing without TLS.
    package func reloadCertificate() throws { try tls?.reload() }

    /// Accepts no more; connections stay.
    package func stopAccepting() async {
        try? await channel.close().get()
    }

    /// Says farewell on all connections and returns when they are closed: at the latest after `deadline`, when those
    /// that did not close themselves are cut off.
    package func drain(within deadline: Duration) async {
        let state = state
        state.beginDraining()
        let cutOff = TimeAmount.nanoseconds(Int64(min(max(deadline / .nanoseconds(1), 0), 1e18)))
        for loop in loops.all {
            loop.post(.run { for connection in loop.connections(of: state) { connection.end(.shuttingDown) } })
            loop.eventLoop.scheduleTask(in: cutOff) {
                for connection in loop.connections(of: state) { connection.context?.close(promise: nil) }
            }
        }
        await state.allClosed()
    }
}

/// There are enough connections, or the server stops: the new one is closed without a word.
struct RefusedConnection: Error {}
