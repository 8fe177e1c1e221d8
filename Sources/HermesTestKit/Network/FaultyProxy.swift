// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers
package import NIOCore
import NIOPosix

/// A network between a client and a server, with a fault for each connection. It delays a connection, cuts it in the
/// middle of a frame, stops passing its bytes, or forgets it when it is idle, like an address translator.
///
/// State: the channels, in a lock. The state of one connection is used on its event loop only.
package final class FaultyProxy: Sendable {
    /// The fault of one connection.
    package struct Fault: Hashable, Sendable {
        package enum End: Hashable, Sendable {
            case never
            /// Closes both sides after this number of bytes in both directions together.
            case cut(afterBytes: Int)
            /// Passes nothing more in either direction, without closing (half-open).
            case silence(afterBytes: Int)
        }

        /// The delay of each byte.
        package var delay: TimeAmount
        /// The delay before the connection reaches the server, so that a later connection may overtake it.
        package var connectDelay: TimeAmount
        package var end: End
        /// The length of the silence after which nothing more passes in either direction; nil if a silence has no
        /// effect.
        package var forgottenAfter: TimeAmount?

        /// Creates a fault. With the defaults, the connection has no fault.
        package init(
            delay: TimeAmount = .zero,
            connectDelay: TimeAmount = .zero,
            end: End = .never,
            forgottenAfter: TimeAmount? = nil
        ) {
            self.delay = delay
            self.connectDelay = connectDelay
            self.end = end
            self.forgottenAfter = forgottenAfter
        }
    }

    private struct State {
        var count = 0
        var channels: [any Channel] = []
    }

    /// The port for clients, on 127.0.0.1.
    package let port: Int
    private let listener: any Channel
    private let state: NIOLockedValueBox<State>

    /// The number of connections so far.
    package var connectionCount: Int { state.withLockedValue { $0.count } }

    /// Listens on a free port.
    ///
    /// - Parameters:
    ///   - target: the server's port on 127.0.0.1.
    ///   - events: loses and repeats single events of the server; nil lets all events pass.
    ///   - fault: returns the fault of the connection with this number; the first is 1.
    package init(
        to target: Int,
        events: EventFaults? = nil,
        fault: @escaping @Sendable (Int) -> Fault = { _ in Fault() }
    ) async throws {
        let state = NIOLockedValueBox(State())
        self.state = state
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { client in
                let number = state.withLockedValue { state in
                    state.count += 1
                    state.channels.append(client)
                    return state.count
                }
                let fault = fault(number)
                // The client's bytes are read only once the proxy is connected to the server.
                let connected = client.eventLoop.flatScheduleTask(in: fault.connectDelay) {
                    ClientBootstrap(group: client.eventLoop).connect(host: "127.0.0.1", port: target)
                }
                return connected.futureResult.flatMapThrowing { server in
                    state.withLockedValue { $0.channels.append(server) }
                    let flow = Flow(fault, events.map { EventFilter($0) }, client: client, server: server)
                    try client.pipeline.syncOperations.addHandler(FlowHandler(flow, to: server))
                    try server.pipeline.syncOperations.addHandler(FlowHandler(flow, to: client))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
    }

    /// Closes the listener and all connections.
    package func stop() async throws {
        try await listener.close()
        for channel in state.withLockedValue({ $0.channels }) { channel.close(promise: nil) }
    }
}

/// One connection through the proxy. It is used on the connection's event loop only.
private final class Flow {
    private let fault: FaultyProxy.Fault
    private let client: any Channel
    private let server: any Channel
    private var filter: EventFilter?
    private var bytes = 0
    private var isSilent = false
    private var lastBytes = NIODeadline.now()

    init(_ fault: FaultyProxy.Fault, _ filter: EventFilter?, client: any Channel, server: any Channel) {
        self.fault = fault
        self.filter = filter
        self.client = client
        self.server = server
    }

    /// Passes bytes on to the client or the server.
    ///
    /// - Throws: if the server's bytes are not valid frames or packets.
    func pass(_ arrived: ByteBuffer, to channel: any Channel) throws {
        let buffer = channel === client ? try filter?.pass(arrived) ?? arrived : arrived
        guard buffer.readableBytes > 0 else { return }
        let now = NIODeadline.now()
        if let forgottenAfter = fault.forgottenAfter, now - lastBytes > forgottenAfter { isSilent = true }
        lastBytes = now
        guard !isSilent else { return }
        bytes += buffer.readableBytes
        switch fault.end {
        case .never:
            send(buffer, to: channel)
        case .cut(let limit):
            send(buffer.prefix(before: limit, of: bytes), to: channel)
            if bytes >= limit { close() }
        case .silence(let limit):
            send(buffer.prefix(before: limit, of: bytes), to: channel)
            isSilent = bytes >= limit
        }
    }

    /// Handles the close of one side.
    func closed() {
        if !isSilent { close() }
    }

    private func send(_ buffer: ByteBuffer, to channel: any Channel) {
        // All bytes have the same delay, so they keep their order.
        channel.eventLoop.scheduleTask(in: fault.delay) { channel.writeAndFlush(buffer, promise: nil) }
    }

    private func close() {
        let (client, server) = (client, server)
        client.eventLoop.scheduleTask(in: fault.delay) {
            client.close(promise: nil)
            server.close(promise: nil)
        }
    }
}

private final class FlowHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let flow: Flow
    private let other: any Channel

    init(_ flow: Flow, to other: any Channel) {
        self.flow = flow
        self.other = other
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            try flow.pass(unwrapInboundIn(data), to: other)
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { flow.closed() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension ByteBuffer {
    /// Returns the bytes of this buffer that are before the limit. The buffer contains the last of `total` bytes, and
    /// the limit counts from the first of the `total` bytes.
    fileprivate func prefix(before limit: Int, of total: Int) -> ByteBuffer {
        let length = max(0, readableBytes - max(0, total - limit))
        return getSlice(at: readerIndex, length: min(length, readableBytes)) ?? ByteBuffer()
    }
}
