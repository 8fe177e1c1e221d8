// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import NIOCore
import Synchronization

/// Creates a gateway's connections from accepted channels of any origin. It counts or refuses each channel, builds
/// the pipeline, and drains the connections when the server stops.
package final class ConnectionAcceptor: Sendable {
    let state: ListenerState
    private let loops: LoopContexts
    private let counter: ConnectionCounter
    private let addConnection: @Sendable (any Channel, Connection.Opening) throws -> Void

    /// - Parameters:
    ///   - takesCertificateNames: whether the common name of a client's certificate is the client's user name.
    ///   - tls: the TLS context of the connections; nil without TLS.
    package init<G: Gateway>(
        _ gateway: G,
        environment: GatewayEnvironment,
        takesCertificateNames: Bool = false,
        tls: TLSContextBox? = nil
    ) {
        let state = ListenerState(
            name: G.name,
            limits: environment.settings.limits,
            idleTimeout: gateway.idleTimeout,
            maxFrameBytes: gateway.maxFrameBytes,
            takesCertificateNames: takesCertificateNames,
            revocations: tls?.hasRevocations == true ? tls : nil,
            counter: environment.counter,
            loginBudget: environment.loginBudget,
            rates: environment.rates,
            logins: environment.logins,
            logger: environment.logger
        )
        self.state = state
        loops = environment.loops
        counter = environment.counter
        addConnection = { channel, opening in
            let connection = Connection(
                opening,
                listener: state,
                requiresAuthentication: G.ClientConnection.requiresAuthentication
            )
            let handler = ConnectionHandler<G.ClientConnection>(
                connection: connection,
                side: gateway.makeConnection(for: connection),
                isEncrypted: opening.carrier == .tls
            )
            try channel.pipeline.syncOperations.addHandler(handler)
        }
    }

    /// The number of open connections.
    package var openConnections: Int { state.openCount }

    /// Counts a channel and calls `serve` for it. The channel is counted until it is closed.
    ///
    /// - Parameter serve: must call ``serve(_:for:countedAs:carrier:)`` with the address that it gets.
    /// - Throws: if the limit is reached. In that case, close the channel without sending anything.
    func admit(_ channel: any Channel, _ serve: (ConnectionCounter.Address) throws -> Void) throws {
        let address = ConnectionCounter.Address(channel.remoteAddress)
        try add(address)
        do {
            try serve(address)
        } catch {
            counter.remove(address)
            throw error
        }
    }

    /// Counts a channel whose client's address is not known yet, because a proxy gives this address later.
    ///
    /// - Returns: a function that must be called with the client's address. It throws if that address has reached its
    ///   limit. If the proxy gives no address, the connection stays counted as unknown.
    func admitUnknown(_ channel: any Channel) throws -> @Sendable (ConnectionCounter.Address) throws -> Void {
        try add(.unknown)
        let counted = CountedAddress()
        channel.closeFuture.whenComplete { [counter] _ in counter.remove(counted.address.withLock(\.self)) }
        return { [counter, state] address in
            guard address != .unknown else { return }
            if let refusal = counter.identify(address) {
                state.metrics.refused(refusal)
                throw RefusedConnection()
            }
            counted.address.withLock { $0 = address }
        }
    }

    /// Charges a TLS handshake, and adds TLS to the pipeline.
    ///
    /// - Throws: if the address has begun too many handshakes. In that case, close the channel without sending
    ///   anything.
    func addTLS(
        _ handler: any ChannelHandler,
        to channel: any Channel,
        from address: ConnectionCounter.Address
    ) throws {
        if let refusal = counter.beginHandshake(of: address, now: channel.eventLoop.now) {
            state.metrics.refused(refusal)
            throw RefusedConnection()
        }
        try counter.handshakeLines.add(handler, to: channel, from: address)
    }

    private func add(_ address: ConnectionCounter.Address) throws {
        guard !state.isDraining else { throw RefusedConnection() }
        if let refusal = counter.add(address) {
            state.metrics.refused(refusal)
            throw RefusedConnection()
        }
    }

    /// Adds the gateway's handler to an admitted channel. Called on the channel's loop.
    ///
    /// - Parameters:
    ///   - peer: the client's address, if it is not the remote address.
    ///   - isClientHidden: whether the remote address belongs to a proxy that did not give the client's address.
    ///   - address: the address under which the connection is counted, if the connection removes itself from the count
    ///     when it closes; otherwise nil.
    ///   - carrier: the layer between the socket and the handler.
    ///   - startsInText: whether the client expects text messages.
    func serve(
        _ channel: any Channel,
        for peer: SocketAddress? = nil,
        isClientHidden: Bool = false,
        countedAs address: ConnectionCounter.Address? = nil,
        carrier: Connection.Carrier,
        startsInText: Bool = false
    ) throws {
        guard let loop = loops[channel.eventLoop], !state.isDraining else { throw RefusedConnection() }
        // The loop decides when to close the connection: see LoopContext.peerClosed(_:).
        if carrier == .plain {
            try? channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
            try? loop.readBuffers.read(channel, isLong: false)
        }
        var opening = Connection.Opening(loop: loop, peer: peer, countedAs: address, carrier: carrier)
        opening.isClientHidden = isClientHidden
        opening.startsInText = startsInText
        try addConnection(channel, opening)
    }

    /// Takes over a WebSocket channel that was accepted elsewhere. The channel's pipeline is complete below the
    /// protocol. Called on the channel's loop.
    ///
    /// - Parameters:
    ///   - startsInText: whether the client expects text messages.
    ///   - place: the channel's place in the count of connections. The HTTP listener that accepted the channel gives
    ///     the place back when the channel is closed.
    ///   - peer: the client's address, if it is not the remote address.
    ///   - isClientHidden: whether the remote address belongs to a proxy that did not give the client's address.
    /// - Throws: if the limit is reached; the caller closes the channel.
    package func take(
        _ channel: any Channel,
        startsInText: Bool = false,
        counted place: HTTPPlace,
        for peer: SocketAddress?,
        isClientHidden: Bool = false
    ) throws {
        guard !state.isDraining else { throw RefusedConnection() }
        do {
            try place.becomeGateway(as: peer.map(ConnectionCounter.Address.init))
        } catch {
            state.metrics.refused(error)
            throw RefusedConnection()
        }
        try serve(
            channel,
            for: peer,
            isClientHidden: isClientHidden,
            carrier: .webSocket,
            startsInText: startsInText
        )
    }

    private static let endsPerTurn = 64

    /// Ends the connections of clients whose certificates have been revoked.
    func endRevoked() {
        guard let revocations = state.revocations else { return }
        let state = state
        for loop in loops.all {
            loop.post(
                .run {
                    let ended = loop.connections(of: state).filter { connection in
                        guard let certificates = connection.certificates else { return false }
                        // A connection with a resumed TLS session also ends, because its chain is not known. The client
                        // reconnects with a full handshake.
                        return revocations.isRevoked(certificates) || !certificates.isChainKnown
                    }
                    for start in stride(from: 0, to: ended.count, by: Self.endsPerTurn) {
                        loop.inTurn {
                            for connection in ended[start...].prefix(Self.endsPerTurn) {
                                connection.end(.attachment(.revoked))
                            }
                        }
                    }
                }
            )
        }
    }

    /// Sends farewells on all connections and returns when they are closed. Connections that are still open after
    /// `deadline` are cut off.
    package func drain(within deadline: Duration) async {
        let state = state
        state.beginDraining()
        let cutOff = TimeAmount(deadline)
        for loop in loops.all {
            loop.post(.run { for connection in loop.connections(of: state) { connection.end(.shuttingDown) } })
            loop.eventLoop.scheduleTask(in: cutOff) {
                for connection in loop.connections(of: state) { connection.context?.close(promise: nil) }
            }
        }
        await state.allClosed()
    }
}

/// The address under which a connection is counted.
///
/// State: one `Mutex`, taken once when the address becomes known and once when the connection is closed.
private final class CountedAddress: Sendable {
    let address = Mutex(ConnectionCounter.Address.unknown)
}

/// The refusal of a new connection, because a limit is reached or the server is stopping. The connection is closed
/// without sending anything.
struct RefusedConnection: Error {}
