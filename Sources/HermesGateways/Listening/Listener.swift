// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Logging
package import NIOCore
package import NIOPosix
import NIOSSL

/// One listening socket of one protocol, and its connections.
package final class Listener: Sendable {
    /// The listener's name in the configuration.
    package let name: String
    /// The address on which the listener listens, with the actual port if any free port was requested.
    package let address: SocketAddress?
    let acceptor: ConnectionAcceptor
    private let channel: any Channel
    private let tls: TLSContextBox?
    private let unixSocketPath: String?

    private init(
        name: String,
        acceptor: ConnectionAcceptor,
        channel: any Channel,
        tls: TLSContextBox?,
        unixSocketPath: String?
    ) {
        self.name = name
        address = channel.localAddress
        self.acceptor = acceptor
        self.channel = channel
        self.tls = tls
        self.unixSocketPath = unixSocketPath
    }

    /// The port on which the listener listens; 0 for a Unix socket.
    package var port: Int { address?.port ?? 0 }

    /// The number of open connections of this listener.
    package var openConnections: Int { acceptor.openConnections }

    /// Creates a gateway, and starts a listener for it.
    ///
    /// - Parameter group: the event loops of `environment.loops`.
    /// - Throws: IOError if the address cannot be bound; NIOSSL's errors for a bad certificate.
    package static func start<G: Gateway>(
        _ type: G.Type,
        on settings: ListenerSettings,
        environment: GatewayEnvironment,
        group: any EventLoopGroup
    ) async throws -> Listener {
        try await start(G(environment: environment), name: G.name, on: settings, environment: environment, group: group)
    }

    /// Starts a listener for a gateway, which may have several listeners.
    ///
    /// - Parameters:
    ///   - name: the listener's name in the configuration.
    ///   - group: the event loops of `environment.loops`.
    /// - Throws: IOError if the address cannot be bound; NIOSSL's errors for a bad certificate.
    package static func start(
        _ gateway: some Gateway,
        name: String,
        on settings: ListenerSettings,
        environment: GatewayEnvironment,
        group: any EventLoopGroup
    ) async throws -> Listener {
        let tls = try settings.tls.map(TLSContextBox.init)
        let acceptor = ConnectionAcceptor(
            gateway,
            environment: environment,
            takesCertificateNames: settings.tls?.isIdentityFromCertificate ?? false,
            tls: tls
        )
        let proxyPatience = settings.proxyProtocol == .v2 ? environment.settings.limits.timeToAuthenticate : nil
        // Until its PROXY header is complete, a plain connection has its own small read buffer.
        let plainReadBytes = proxyPatience == nil ? nil : 256
        let readBytes = tls == nil ? plainReadBytes : maxEncryptedReadBytes
        let bootstrap = bootstrap(group, maxReadBytes: readBytes, logger: environment.logger) { channel in
            try accept(channel, by: acceptor, proxyPatience: proxyPatience, tls: tls)
        }
        let channel: any Channel
        if let path = settings.unixSocketPath {
            channel = try await UnixSocket.bind(bootstrap, path: path, group: group)
        } else {
            // NIO sets TCP_NODELAY on the listening socket, and accepted sockets inherit it.
            channel = try await bootstrap.bind(host: settings.host, port: settings.port).get()
        }
        return Listener(
            name: name,
            acceptor: acceptor,
            channel: channel,
            tls: tls,
            unixSocketPath: settings.unixSocketPath
        )
    }

    /// The longest read of an encrypted connection, in bytes: about one TLS record (RFC 8446, section 5.1).
    static let maxEncryptedReadBytes = 16_384

    /// Returns a bootstrap with the common options of all listening sockets.
    ///
    /// - Parameters:
    ///   - maxReadBytes: the longest read in bytes, which is also the largest size of the read buffer that a connection
    ///     keeps; nil if `accept` chooses the read buffers.
    ///   - logger: gets a warning when no connection can be accepted.
    ///   - accept: called for each connection, on its loop; if it throws, the connection is closed without
    ///     sending anything.
    package static func bootstrap(
        _ group: any EventLoopGroup,
        maxReadBytes: Int?,
        logger: Logger,
        accept: @escaping @Sendable (any Channel) throws -> Void
    ) -> ServerBootstrap {
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .pausingWithoutDescriptors(logger)
            // NIO would keep as many buffers as it reads in one pass.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try accept(channel) } }
        guard let maxReadBytes else { return bootstrap }
        // NIO keeps the read buffers of each connection. They are small at first, grow with the traffic, and no budget
        // counts them. Plain connections share their read buffers instead (``ReadBuffers``).
        return bootstrap.childChannelOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 256, maximum: maxReadBytes)
        )
    }

    private static func accept(
        _ channel: any Channel,
        by acceptor: ConnectionAcceptor,
        proxyPatience: Duration?,
        tls: TLSContextBox?
    ) throws {
        guard let proxyPatience else {
            return try acceptor.admit(channel) { address in
                let carrier = try addTLS(tls, to: channel, from: address, by: acceptor)
                try acceptor.serve(channel, countedAs: address, carrier: carrier)
            }
        }
        let identify = try acceptor.admitUnknown(channel)
        try channel.pipeline.syncOperations.addHandler(
            ProxyHeaderHandler(patience: proxyPatience, logger: acceptor.state.logger) { channel, peer in
                // A connection whose proxy did not give the client's address counts only in the total.
                let address = peer.map(ConnectionCounter.Address.init) ?? .unknown
                try identify(address)
                let carrier = try addTLS(tls, to: channel, from: address, by: acceptor)
                try acceptor.serve(channel, for: peer, isClientHidden: peer == nil, carrier: carrier)
            }
        )
    }

    private static func addTLS(
        _ tls: TLSContextBox?,
        to channel: any Channel,
        from address: ConnectionCounter.Address,
        by acceptor: ConnectionAcceptor
    ) throws -> Connection.Carrier {
        guard let tls else { return .plain }
        if tls.hasRevocations {
            let chain = VerifiedChain(tls.current())
            try acceptor.addTLS(chain.makeHandler(), to: channel, from: address)
            try channel.pipeline.syncOperations.addHandler(chain)
        } else {
            try acceptor.addTLS(NIOSSLServerHandler(context: tls.current()), to: channel, from: address)
        }
        return .tls
    }

    /// Reads the certificate and the revocation lists again. New connections use the new certificate. Open connections
    /// with a revoked certificate end. Does nothing without TLS.
    package func reloadCertificate() throws {
        // This also runs after an error, because revocation lists may have been read even if the certificate was not.
        defer { acceptor.endRevoked() }
        try tls?.reload()
    }

    /// The certificate; nil without TLS.
    package var certificate: TLSContextBox? { tls }

    /// Whether a newer revocation list is overdue.
    ///
    /// - Parameter now: the present time in seconds since 1970.
    package func isRevocationOutdated(now: Int) -> Bool { tls?.isRevocationOutdated(now: now) ?? false }

    /// Stops accepting connections. Open connections stay.
    package func stopAccepting() async {
        try? await channel.close().get()
        if let unixSocketPath { UnixSocket.remove(unixSocketPath) }
    }

    /// Sends farewells on all connections and returns when they are closed. Connections that are still open after
    /// `deadline` are cut off.
    package func drain(within deadline: Duration) async { await acceptor.drain(within: deadline) }
}
