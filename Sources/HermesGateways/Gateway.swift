// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// One wire protocol. Everything that lists protocols (`hermes serve`, metrics, documentation) reads
/// ``GatewayCatalog``.
package protocol Gateway: Sendable {
    /// The session of one connection.
    associatedtype Session: GatewaySession

    /// The key in the configuration (`listeners.<name>`) and the label in metrics: lower-case letters.
    static var name: String { get }
    /// The default TCP port.
    static var defaultPort: Int { get }

    /// The subprotocol over WebSocket on the HTTP port; nil: not served there.
    static var webSocketSubprotocol: String? { get }

    /// The path over WebSocket.
    static var webSocketPath: String { get }

    /// The number of the written bytes that go into one WebSocket message.
    static func webSocketMessageBytes(_ written: ByteBuffer) -> Int

    init(environment: GatewayEnvironment)

    /// The time without a sign of life after which a connection is closed.
    var idleTimeout: Duration { get }
    /// The longest body of a frame, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates the session of a new connection; called on the connection's event loop.
    func makeSession(for connection: Connection) -> Session
}

extension Gateway {
    package static var webSocketSubprotocol: String? { nil }

    package static var webSocketPath: String { "/\(name)" }

    package static func webSocketMessageBytes(_ written: ByteBuffer) -> Int { written.readableBytes }
}
