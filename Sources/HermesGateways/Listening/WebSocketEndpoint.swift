// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
package import NIOCore

/// A protocol served over WebSocket on the HTTP port.
package struct WebSocketEndpoint: Sendable {
    /// The protocol's name.
    package let name: String
    /// The path of the endpoint, such as `/mqtt`.
    package let path: String
    package let acceptor: ConnectionAcceptor
    /// The subprotocol that clients must request. If it has a variant with text messages, clients may request that
    /// variant instead.
    package let subprotocol: String
    private let textSubprotocol: String?
    private let makeReader: @Sendable () -> any WebSocketReading
    private let message: @Sendable (ByteBuffer) -> WebSocketMessage

    /// - Returns: nil for a gateway that is not served over WebSocket.
    package init?<G: Gateway>(_ gateway: G, environment: GatewayEnvironment) {
        guard let subprotocol = G.webSocketSubprotocol else { return nil }
        name = G.name
        path = G.webSocketPath
        self.subprotocol = subprotocol
        textSubprotocol = G.webSocketTextSubprotocol
        acceptor = ConnectionAcceptor(gateway, environment: environment)
        makeReader = G.makeWebSocketReader
        message = G.webSocketMessage
    }

    /// Returns the first of the requested subprotocols that the endpoint supports; nil if it supports none of them.
    package func subprotocol(of requested: some Sequence<some StringProtocol>) -> String? {
        for name in requested {
            if name == subprotocol { return subprotocol }
            if let textSubprotocol, name == textSubprotocol { return textSubprotocol }
        }
        return nil
    }

    /// Takes over a channel after its handshake. Called on the channel's loop.
    ///
    /// - Parameters:
    ///   - subprotocol: the subprotocol that was agreed on.
    ///   - place: the channel's place in the count of connections. The HTTP listener that accepted the channel gives
    ///     the place back when the channel is closed.
    ///   - peer: the client's address, if it is not the remote address.
    ///   - isClientHidden: whether the remote address belongs to a proxy that did not give the client's address.
    /// - Throws: if the limit is reached; the caller closes the channel.
    package func take(
        _ channel: any Channel,
        subprotocol: String,
        counted place: HTTPPlace,
        for peer: SocketAddress?,
        isClientHidden: Bool = false
    ) throws {
        let options = channel.syncOptions
        // Only the channels of tests lack the option.
        try? options?.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try? options?.setOption(
            .recvAllocator,
            // NIO keeps this buffer, so it is small. After the login the connection reads more at once
            // (``Connection/readsLong()``).
            value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 256, maximum: 4_096)
        )
        try channel.pipeline.syncOperations.addHandler(WebSocketHandler(makeReader(), message: message))
        try acceptor.take(
            channel,
            startsInText: subprotocol == textSubprotocol,
            counted: place,
            for: peer,
            isClientHidden: isClientHidden
        )
    }
}
