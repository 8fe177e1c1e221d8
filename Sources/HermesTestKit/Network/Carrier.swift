// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Hermes

/// The protocol that carries the packets of a `HermesClient`. The server's address alone determines which one is used.
package enum Carrier: CaseIterable, Sendable {
    case delimited
    case webSocket
    case mqtt
    case mqttOverWebSocket

    /// The name of the server's listener for this carrier.
    package var listener: String {
        switch self {
        case .delimited: "delimited"
        case .mqtt: "mqtt"
        case .webSocket, .mqttOverWebSocket: "http"
        }
    }

    package func address(of server: TestServer) -> ServerAddress { address(port: server.port(listener)) }

    package func address(port: Int) -> ServerAddress {
        let text =
            switch self {
            case .delimited: "tcp://127.0.0.1:\(port)"
            case .webSocket: "ws://127.0.0.1:\(port)"
            case .mqtt: "mqtt://127.0.0.1:\(port)"
            case .mqttOverWebSocket: "ws://127.0.0.1:\(port)/mqtt"
            }
        return ServerAddress(text) ?? ServerAddress(port: port)
    }

    /// Returns faults that lose and repeat events on this carrier; see ``EventFaults``.
    package func eventFaults(
        burst: Int = 1,
        entry: @escaping @Sendable (UInt64) -> EventFaults.Verdict,
        push: @escaping @Sendable (UInt64) -> EventFaults.Verdict = { _ in .pass }
    ) -> EventFaults {
        let (framing, isWebSocket): (EventFaults.Framing, Bool) =
            switch self {
            case .delimited: (.delimited, false)
            case .webSocket: (.delimited, true)
            case .mqtt: (.mqtt, false)
            case .mqttOverWebSocket: (.mqtt, true)
            }
        return EventFaults(framing, isWebSocket: isWebSocket, burst: burst, entry: entry, push: push)
    }
}
