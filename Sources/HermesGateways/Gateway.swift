// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// One wire protocol. Everything that lists protocols (`hermes serve`, metrics, documentation) reads
/// ``GatewayCatalog``.
package protocol Gateway: Sendable {
    /// The server's side of one connection.
    associatedtype ClientConnection: GatewayConnection

    /// The key in the configuration (`listeners.<name>`) and the label in metrics. It consists of lower-case letters.
    static var name: String { get }
    /// The name in the documentation.
    static var title: String { get }
    /// The text on the page at `/` that says whom the protocol is for.
    static var purpose: String { get }
    /// The default TCP port.
    static var defaultPort: Int { get }
    /// The optional features of the protocol's listeners.
    static var listenerFeatures: ListenerSettings.Features { get }
    /// The protocol's predefined listeners, which need no key `protocol` in the configuration.
    static var listeners: [ListenerSettings.Keys] { get }

    /// The settings of the protocol, without the settings of its listeners.
    associatedtype Options: GatewayOptions = NoOptions

    /// The rules for the topics through which the protocol's clients are reached; nil if there are no such topics.
    static var applicationTopics: (any ApplicationTopicForm.Type)? { get }

    /// The WebSocket subprotocol on the HTTP port; nil if the protocol is not served over WebSocket.
    static var webSocketSubprotocol: String? { get }

    /// The WebSocket subprotocol whose clients get text messages until they send a binary message; nil if all messages
    /// are binary.
    static var webSocketTextSubprotocol: String? { get }

    /// The path on the HTTP port for WebSocket connections.
    static var webSocketPath: String { get }

    /// Creates the reader of the WebSocket frames of one connection.
    static func makeWebSocketReader() -> any WebSocketReading

    /// Returns the first WebSocket message of the bytes in `written`, which the protocol has written.
    static func webSocketMessage(_ written: ByteBuffer) -> WebSocketMessage

    init(environment: GatewayEnvironment)

    /// The time without a sign of life after which a connection is closed.
    var idleTimeout: Duration { get }
    /// The longest body of a frame, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates the server's side of a new connection. Called on the connection's event loop.
    func makeConnection(for connection: Connection) -> ClientConnection
}

extension Gateway {
    package static var listenerFeatures: ListenerSettings.Features { .gateway }

    package static var listeners: [ListenerSettings.Keys] {
        [ListenerSettings.Keys(name, title: title, port: defaultPort, features: listenerFeatures)]
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
