// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// One wire protocol as the server sees it. Everything that lists protocols (`hermes serve`, metrics, documentation)
/// reads ``GatewayCatalog``.
package protocol Gateway: Sendable {
    /// What serves one connection.
    associatedtype Session: GatewaySession

    /// The key in the configuration (`listeners.<name>`) and the label in metrics: lower case letters.
    static var name: String { get }
    /// The TCP port of the listener unless configured.
    static var defaultPort: Int { get }

    /// The subprotocol under which it is served over WebSocket on the HTTP port; nil: it is not.
    static var webSocketSubprotocol: String? { get }

    /// The path at which it is served over WebSocket.
    static var webSocketPath: String { get }

    /// How many of the bytes that are written together go into one WebSocket message.
    static func webSocketMessageBytes(_ written: ByteBuffer) -> Int

    init(environment: GatewayEnvironment)

    /// After this long without a sign of life a connection is closed.
    var idleTimeout: Duration { get }
    /// The longest body of a frame, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates what serves a new connection; called on the connection's event loop.
    func makeSession(for connection: Connection) -> Session
}

extension Gateway {
    package static var webSocketSubprotocol: String? { nil }

    package static var webSocketPath: String { "/\(name)" }

    package static func webSocketMessageBytes(_ written: ByteBuffer) -> Int { written.readableBytes }
}
