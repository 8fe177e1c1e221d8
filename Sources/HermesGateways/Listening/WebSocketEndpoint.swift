// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A protocol served over WebSocket on the HTTP port.
package struct WebSocketEndpoint: Sendable {
    /// The protocol's name.
    package let name: String
    /// Its path: `/mqtt`.
    package let path: String
    /// The subprotocol that clients must request.
    package let subprotocol: String
    package let acceptor: ConnectionAcceptor
    private let messageBytes: @Sendable (ByteBuffer) -> Int

    /// - Returns: nil for a gateway that is not served over WebSocket.
    package init?<G: Gateway>(_ gateway: G, environment: GatewayEnvironment) {
        guard let subprotocol = G.webSocketSubprotocol else { return nil }
        name = G.name
        path = G.webSocketPath
        self.subprotocol = subprotocol
        acceptor = ConnectionAcceptor(gateway, environment: environment)
        messageBytes = G.webSocketMessageBytes
    }

    /// Takes over a channel after its handshake. Called on the channel's loop.
    ///
    /// - Parameters:
    ///   - place: its place in the count, until the acceptor gives it back.
    ///   - peer: the client's address, if it is not the remote address.
    /// - Throws: if the limit is reached; the caller closes the channel.
    package func take(_ channel: any Channel, counted place: HTTPPlace, for peer: SocketAddress?) throws {
        let options = channel.syncOptions
        // Only a test's channel lacks the option.
        try? options?.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try? options?.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 256, maximum: 65_536)
        )
        try channel.pipeline.syncOperations.addHandler(WebSocketHandler(messageBytes: messageBytes))
        try acceptor.take(channel, counted: place, for: peer)
    }
}
