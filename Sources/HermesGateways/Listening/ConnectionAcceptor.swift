// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import NIOCore
import Synchronization

/// Makes a gateway's connections of accepted channels, however these came: counts and refuses them, builds the pipeline,
/// and lets the connections go when the server stops.
package final class ConnectionAcceptor: Sendable {
    let state: ListenerState
    private let loops: LoopContexts
    private let counter: ConnectionCounter
    private let addSession: @Sendable (any Channel, Connection.Opening) throws -> Void

    /// - Parameters:
    ///   - takesCertificateNames: whether the common name of a client's certificate is its user name.
    ///   - tls: what encrypts its connections.
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
            logger: environment.logger
        )
        self.state = state
        loops = environment.loops
        counter = environment.counter
        addSession = { channel, opening in
            let connection = Connection(
                opening,
                listener: state,
                requiresAuthentication: G.Session.requiresAuthentication
            )
            let handler = ConnectionHandler<G.Session>(
                connection: connection,
                session: gateway.makeSession(for: connection),
                isEncrypted: opening.carrier == .tls
            )
            try channel.pipeline.syncOperations.addHandler(handler)
        }
    }

    /// Open connections.
    package var openConnections: Int { state.openCount }

    /// Counts a channel and has it served; its connection is counted until it is closed.
    ///
    /// - Parameter serve: calls ``serve(_:for:countedAs:carrier:)`` with what it is given.
    /// - Throws: if there are enough; the channel is to be closed without a word.
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

    /// Counts a channel of which a proxy has yet to tell who is behind it.
    ///
    /// - Returns: to be called once it has told; throws if there are enough of the address.
    func admitUnknown(_ channel: any Channel) throws -> @Sendable (SocketAddress?) throws -> Void {
        try add(.unknown)
        let counted = CountedAddress()
        channel.closeFuture.whenComplete { [counter] _ in counter.remove(counted.address.withLock(\.self)) }
        return { [counter, state] address in
            let address = ConnectionCounter.Address(address)
            if let refusal = counter.identify(address) {
                state.metrics.refused(refusal)
                throw RefusedConnection()
            }
            counted.address.withLock { $0 = address }
        }
    }

    private func add(_ address: ConnectionCounter.Address) throws {
        guard !state.isDraining else { throw RefusedConnection() }
        if let refusal = counter.add(address) {
            state.metrics.refused(refusal)
            throw RefusedConnection()
        }
    }

    /// Adds the gateway's handler to a channel that is admitted. To be called on the channel's loop.
    ///
    /// - Parameters:
    ///   - peer: who is behind the channel, where that is not its remote address.
    ///   - address: what the connection is counted as, if that is its own to end.
    ///   - carrier: what lies between the socket and the handler.
    func serve(
        _ channel: any Channel,
        for peer: SocketAddress? = nil,
        countedAs address: ConnectionCounter.Address? = nil,
        carrier: Connection.Carrier
    ) throws {
        guard let loop = loops[channel.eventLoop], !state.isDraining else { throw RefusedConnection() }
        // So that it is the loop's to say when the connection is closed, see LoopContext.peerClosed(_:).
        if carrier == .plain { try? channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true) }
        try addSession(channel, Connection.Opening(loop: loop, peer: peer, countedAs: address, carrier: carrier))
    }

    /// Takes over a channel that was accepted elsewhere (WebSocket): everything that carries the protocol's bytes is in
    /// its pipeline already. To be called on the channel's loop.
    ///
    /// - Parameters:
    ///   - place: where it is counted, until whoever accepted it gives that back.
    ///   - peer: who is behind the channel, where that is not its remote address.
    /// - Throws: if there are enough connections; the caller closes the channel.
    package func take(_ channel: any Channel, counted place: HTTPPlace, for peer: SocketAddress?) throws {
        guard !state.isDraining else { throw RefusedConnection() }
        do {
            try place.becomeGateway(as: peer.map(ConnectionCounter.Address.init))
        } catch {
            state.metrics.refused(error.refusal)
            throw RefusedConnection()
        }
        try serve(channel, for: peer, carrier: .webSocket)
    }

    /// Ends the connections of clients whose certificates were taken back meanwhile.
    func endRevoked() {
        guard let revocations = state.revocations else { return }
        let state = state
        for loop in loops.all {
            loop.post(
                .run {
                    for connection in loop.connections(of: state) {
                        guard let certificate = connection.certificate, revocations.isRevoked(certificate) else {
                            continue
                        }
                        connection.end(.session(.revoked))
                    }
                }
            )
        }
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

/// What a connection is counted as.
///
/// State: one `Mutex`, taken once when it becomes known and once when the connection is closed.
private final class CountedAddress: Sendable {
    let address = Mutex(ConnectionCounter.Address.unknown)
}

/// There are enough connections, or the server stops: the new one is closed without a word.
struct RefusedConnection: Error {}
