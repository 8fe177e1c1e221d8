// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// The native protocol: `hermes.v1.Packet` in frames with a varint length.
package struct DelimitedGateway: Gateway {
    package static let name = "delimited"
    package static let title = "Delimited"
    package static let purpose = "the native protocol, for the SDK and the command line"
    package static let defaultPort = 9000
    package static let webSocketSubprotocol: String? = "hermes.v1"
    package static let webSocketTextSubprotocol: String? = "hermes.v1.json"
    package static let webSocketPath = "/ws"

    package static func makeWebSocketReader() -> any WebSocketReading { WebSocketPackets() }

    /// Returns one frame as one message. So a web page need not split messages or join frames.
    package static func webSocketMessage(_ written: ByteBuffer) -> WebSocketMessage {
        WebSocketMessage(delimited: written)
    }

    let environment: GatewayEnvironment

    package init(environment: GatewayEnvironment) { self.environment = environment }

    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { environment.settings.limits.maxFrameBytes }

    package func makeConnection(for connection: Connection) -> NativeConnection {
        NativeConnection(connection: connection, environment: environment)
    }
}
