// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// The listening socket of the HTTP port, and its connections up to their first request. After that, a connection
/// belongs to a gateway (WebSocket) or to ``requests``.
///
/// The port opens before everything else, so that `/healthz` and `/readyz` answer while the server starts.
///
/// State: one `Mutex` around the open connections.
final class HTTPListener: Sendable {
    typealias Exchange = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    /// The use of a connection after its first request.
    enum Outcome: Sendable {
        case http(Exchange)
        /// A gateway's connection.
        case webSocket
    }

    /// A connection whose first request has arrived and needs an answer.
    struct Connection: Sendable {
        let exchange: Exchange
        let peer: HTTPPeer
    }

    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isStopping = false
        /// The task that waits until no connection is open.
        var waiter: CheckedContinuation<Void, Never>?
    }

    let requests: AsyncStream<Connection>
    let gate: HTTPGate
    private let requested: AsyncStream<Connection>.Continuation
    private let counter: ConnectionCounter
    private let settings: ListenerSettings
    private let tls: TLSContextBox?
    private let logger: Logger
    private let state = Mutex(State())
    private let socket = Mutex<(any Channel)?>(nil)

    private init(
        _ settings: ListenerSettings,
        gate: HTTPGate,
        counter: ConnectionCounter,
        tls: TLSContextBox?,
        logger: Logger
    ) {
        self.settings = settings
        self.gate = gate
        self.counter = counter
        self.tls = tls
        self.logger = logger
        (requests, requested) = AsyncStream.makeStream()
    }

    /// Opens the port.
    ///
    /// - Parameters:
    ///   - tls: the certificate; nil if the port is not encrypted.
    ///   - counter: counts the connections of the listeners that share its limits.
    ///   - group: the event loops of the gateways.
    static func start(
        _ settings: ListenerSettings,
        gate: HTTPGate,
        counter: ConnectionCounter,
        tls: TLSContextBox?,
        group: any EventLoopGroup,
        logger: Logger
    ) async throws -> HTTPListener {
        let listener = HTTPListener(settings, gate: gate, counter: counter, tls: tls, logger: logger)
        let bootstrap = Listener.bootstrap(group, maxReadBytes: maxReadBytes, logger: logger) { channel in
            try listener.accept(channel)
        }
        let channel = try await bootstrap.bind(host: settings.host, port: settings.port).get()
        listener.socket.withLock { $0 = channel }
        return listener
    }

    var port: Int { socket.withLock { $0?.localAddress?.port ?? 0 } }

    // MARK: Accepting

    private func accept(_ channel: any Channel) throws {
        // Peers may close their side and still wait for the answer.
        try? channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
        guard settings.proxyProtocol == .v2 else {
            let peer = channel.remoteAddress
            let place = try place(
                for: gate.forwarded.trusts(peer) ? .unknown : ConnectionCounter.Address(peer),
                channel
            )
            return try serve(channel, peer: HTTPPeer(address: peer, isClientHidden: false), place)
        }
        let place = try place(for: .unknown, channel)
        try channel.pipeline.syncOperations.addHandler(
            ProxyHeaderHandler(patience: gate.limits.head, logger: logger) { [self] channel, told in
                let peer = HTTPPeer(address: told ?? channel.remoteAddress, isClientHidden: told == nil)
                if !gate.forwarded.trusts(peer.address) {
                    do throws(ConnectionCounter.Refusal) {
                        try place.identify(peer.counted)
                    } catch {
                        gate.metrics.refused(error)
                        throw error
                    }
                }
                try serve(channel, peer: peer, place)
            }
        )
    }

    /// Counts a connection until it is closed.
    private func place(for address: ConnectionCounter.Address, _ channel: any Channel) throws -> HTTPPlace {
        let place: HTTPPlace
        do throws(ConnectionCounter.Refusal) {
            place = try HTTPPlace(counter, address)
        } catch {
            gate.metrics.refused(error)
            throw error
        }
        let id = ObjectIdentifier(channel)
        let isTaken = state.withLock { state in
            if !state.isStopping { state.channels[id] = channel }
            return !state.isStopping
        }
        channel.closeFuture.whenComplete { [self] _ in
            place.giveBack()
            forget(id)
        }
        guard isTaken else { throw ChannelError.alreadyClosed }
        return place
    }

    private func forget(_ id: ObjectIdentifier) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.channels[id] = nil
            guard state.channels.isEmpty else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    // MARK: The pipeline

    private func serve(_ channel: any Channel, peer: HTTPPeer, _ place: HTTPPlace) throws {
        let pipeline = channel.pipeline.syncOperations
        if let tls {
            // A trusted proxy connects for many clients, so its address is not limited.
            let address = gate.forwarded.trusts(peer.address) ? .unknown : peer.counted
            if let refusal = counter.beginHandshake(of: address, now: channel.eventLoop.now) {
                gate.metrics.refused(refusal)
                throw refusal
            }
            try counter.handshakeLines.add(NIOSSLServerHandler(context: tls.current()), to: channel, from: address)
        }
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = Self.maxFieldBytes
        limits.maxHeaderListSize = Self.maxHeadBytes
        limits.maxHeaderFieldCount = Self.maxFields
        let encoder = HTTPResponseEncoder()
        let decoder = ByteToMessageHandler(
            HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)
        )
        let guardian = HTTPGuardHandler(gate: gate, peer: peer)
        let arrival = HTTPArrivalHandler(telling: guardian)
        let upgrade = NIOTypedHTTPServerUpgradeHandler<Outcome>(
            httpEncoder: encoder,
            extraHTTPHandlers: [arrival, decoder, guardian],
            upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
                upgraders: [WebSocketUpgrader(gate: gate, peer: peer, place: place)],
                notUpgradingCompletionHandler: { [isEncrypted = tls != nil] channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: isEncrypted))
                        return .http(
                            try Exchange(
                                wrappingChannelSynchronously: channel,
                                configuration: .init(
                                    backPressureStrategy: .init(lowWatermark: 1, highWatermark: 2),
                                    isOutboundHalfClosureEnabled: true
                                )
                            )
                        )
                    }
                }
            )
        )
        try pipeline.addHandler(encoder)
        try pipeline.addHandler(arrival)
        try pipeline.addHandler(decoder)
        try pipeline.addHandler(guardian)
        try pipeline.addHandler(upgrade)
        let id = ObjectIdentifier(channel)
        upgrade.upgradeResultFuture.whenComplete { [self] result in
            switch result {
            case .success(.http(let exchange)):
                let connection = Connection(exchange: exchange, peer: peer)
                if case .terminated = requested.yield(connection) { drop(exchange) }
            // The gateway closes a WebSocket when the server stops.
            case .success(.webSocket): forget(id)
            case .failure: channel.close(promise: nil)
            }
        }
    }

    /// Closes a connection that is no longer served. The exchange must be consumed, because otherwise NIO ends the
    /// process.
    private func drop(_ exchange: Exchange) {
        exchange.channel.close(promise: nil)
        // The task is unstructured, because the event loop cannot wait. It ends at once, because the channel is closed.
        Task { try? await exchange.executeThenClose { _, _ in } }
    }

    /// The largest read, in bytes. It is small, because some reads of each request may wait, and they count toward no
    /// budget.
    private static let maxReadBytes = 4_096
    /// The longest header field and the longest target, in bytes.
    private static let maxFieldBytes = 8 * 1024
    /// The longest head, in bytes.
    private static let maxHeadBytes = 32 * 1024
    private static let maxFields = 100

    // MARK: Stopping

    /// Stops accepting, completes the requests being answered, and closes everything.
    ///
    /// - Parameter deadline: the time within which the requests must be complete.
    func stop(within deadline: TimeAmount) async {
        let channel = socket.withLock(\.self)
        try? await channel?.close().get()
        let open = state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in open { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        // The event loop outlives the port, so it can run this task.
        let cutOff = channel?.eventLoop.scheduleTask(in: deadline) { [self] in closeAll() }
        await withCheckedContinuation { waiter in
            let isDone = state.withLock { state in
                if !state.channels.isEmpty { state.waiter = waiter }
                return state.channels.isEmpty
            }
            if isDone { waiter.resume() }
        }
        cutOff?.cancel()
        requested.finish()
    }

    private func closeAll() {
        for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
    }
}
