// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// One wire protocol. Everything that lists protocols (`hermes serve`, metrics, documentation) reads
/// ``GatewayCatalog``.
package protocol Gateway: Sendable {
    /// The server's side of one connection.
    associatedtype ClientConnection: GatewayConnection

    /// The key in the configuration (`listeners.<name>`) and the label in metrics: lower-case letters.
    static var name: String { get }
    /// The name in the documentation.
    static var title: String { get }
    /// The words that say on the page at `/` whom the protocol is for.
    static var purpose: String { get }
    /// The default TCP port.
    static var defaultPort: Int { get }
    /// The optional features of its listeners.
    static var listenerFeatures: ListenerSettings.Features { get }
    /// The listeners that need no `protocol` in the configuration.
    static var listeners: [ListenerSettings.Keys] { get }

    /// The settings beside those of the listeners.
    associatedtype Options: GatewayOptions = NoOptions

    /// The topics through which the protocol's clients are reached; nil: there are none.
    static var applicationTopics: (any ApplicationTopicForm.Type)? { get }

    /// The subprotocol over WebSocket on the HTTP port; nil: not served there.
    static var webSocketSubprotocol: String? { get }

    /// The subprotocol whose clients get text messages until they send a binary one. Nil: messages are binary.
    static var webSocketTextSubprotocol: String? { get }

    /// The path over WebSocket.
    static var webSocketPath: String { get }

    /// Creates the reader of a connection's WebSocket.
    static func makeWebSocketReader() -> any WebSocketReading

    /// The WebSocket message at the beginning of written bytes.
    static func webSocketMessage(_ written: ByteBuffer) -> WebSocketMessage

    init(environment: GatewayEnvironment)

    /// The time without a sign of life after which a connection is closed.
    var idleTimeout: Duration { get }
    /// The longest body of a frame, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates the side of the server for a new connection; called on the connection's event loop.
    func makeConnection(for connection: Connection) -> ClientConnection
}

extension Gateway {
    package static var listenerFeatures: ListenerSettings.Features { .gateway }

    package static var listeners: [ListenerSettings.Keys] {
        [ListenerSettings.Keys(name, title: title, port: defaultPort, isEnabled: true, features: listenerFeatures)]
    }

    package static var applicationTopics: (any ApplicationTopicForm.Type)? { nil }

    package static var webSocketSubprotocol: String? { nil }

    package static var webSocketPath: String { "/\(name)" }

    package static var webSocketTextSubprotocol: String? { nil }

    package static func makeWebSocketReader() -> any WebSocketReading { WebSocketInput() }

    package static func webSocketMessage(_ written: ByteBuffer) -> WebSocketMessage {
        WebSocketMessage(bytes: written.readableBytes)
    }
}
