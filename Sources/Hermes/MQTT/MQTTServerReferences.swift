// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Follows the server references with which servers redirect the client to other servers (MQTT 5.0, section 4.13).
struct MQTTServerReferences: Sendable {
    /// The largest number of redirections in a row. Without this limit, servers could redirect the client in a circle
    /// forever.
    static let maxHops = 4
    /// The window in which a redirected client reconnects. A server may redirect all its clients at once. The window
    /// keeps the clients from arriving at the next server together.
    private static let window = Duration.seconds(2)

    /// The port for references that name no port.
    let port: Int
    /// The number of servers in a row that redirected this client.
    private var hops = 0

    init(port: Int) { self.port = port }

    /// Notes that a server has accepted the client.
    mutating func arrived() { hops = 0 }

    /// Whether a reason code redirects the client to another server.
    func isReference(_ reason: MQTTReasonCode) -> Bool { reason == .useAnotherServer || reason == .serverMoved }

    /// Returns the advice to connect to the first usable server reference, which is a host with or without a port.
    /// Returns nil if the reason code is neither 0x9C nor 0x9D, if no reference is usable, or after ``maxHops``
    /// redirections.
    mutating func advice(
        _ reason: MQTTReasonCode,
        _ properties: MQTTProperties
    ) -> ConnectionEngine.StateMachine.Advice? {
        guard isReference(reason), hops < Self.maxHops, let text = properties.serverReference else { return nil }
        let endpoints = text.split(separator: " ").compactMap { reference in
            ServerAddress.Endpoint(String(reference)) ?? ServerAddress.Endpoint("\(reference):\(port)")
        }
        guard let endpoint = endpoints.first else { return nil }
        hops += 1
        return ConnectionEngine.StateMachine.Advice(notBefore: .zero, window: Self.window, endpoint: endpoint)
    }
}
