// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import Testing

/// What carries the packets of a `HermesClient`, which the address alone chooses.
enum Carrier: CaseIterable, Sendable {
    case delimited
    case webSocket
    case mqtt
    case mqttOverWebSocket

    /// The listener of a server that takes it.
    var listener: String {
        switch self {
        case .delimited: "delimited"
        case .mqtt: "mqtt"
        case .webSocket, .mqttOverWebSocket: "http"
        }
    }

    func address(of server: TestServer) -> ServerAddress { address(port: server.port(listener)) }

    func address(port: Int) -> ServerAddress {
        let text =
            switch self {
            case .delimited: "tcp://127.0.0.1:\(port)"
            case .webSocket: "ws://127.0.0.1:\(port)"
            case .mqtt: "mqtt://127.0.0.1:\(port)"
            case .mqttOverWebSocket: "ws://127.0.0.1:\(port)/mqtt"
            }
        return ServerAddress(text) ?? ServerAddress(port: port)
    }
}

/// A store of the server, and a carrier: each carrier once, and each store.
struct Surroundings: Sendable, CustomTestStringConvertible {
    let store: TestStore
    let carrier: Carrier

    static let all =
        Carrier.allCases.map { Self(store: .memory, carrier: $0) }
        + [Carrier.delimited, .mqtt].map { Self(store: .sqlite, carrier: $0) }

    var testDescription: String { "\(store), \(carrier)" }
}
