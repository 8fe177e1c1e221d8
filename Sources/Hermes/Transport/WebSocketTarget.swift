// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The WebSocket that a client requests.
struct WebSocketTarget: Sendable {
    /// The path, from the slash on.
    var path: String
    var subprotocol: String
}
