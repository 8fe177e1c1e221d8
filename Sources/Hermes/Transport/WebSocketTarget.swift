// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The WebSocket that a client requests.
struct WebSocketTarget: Sendable {
    /// The path, which begins with a slash.
    var path: String
    var subprotocol: String
}
