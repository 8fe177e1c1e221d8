// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// MQTT and the native protocol over WebSocket on the HTTP port.
package struct WebSocketSettings: Sendable, Hashable {
    package var isEnabled = true
    /// The origins of the web pages that may open a WebSocket. For an empty list, see ``WebOrigins``.
    package var origins: [String] = []

    package init() {}
}

extension WebSocketSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .flag(
            \.isEnabled,
            "http.websocket.enabled",
            "Whether the HTTP port serves MQTT over WebSocket at /mqtt and the native protocol at /ws, independently "
                + "of their own listeners."
        ),
        .texts(
            \.origins,
            "http.websocket.origins",
            maxCount: 100,
            maxBytes: 255,
            "The origins whose web pages may open a WebSocket, such as https://example.org. If the port is on a "
                + "loopback address, the pages of this machine may always do so. If the port is on another address and "
                + "the list is empty, the server's own pages may do so. If the list is empty and clients cannot "
                + "connect anonymously (at least one of access.anonymous and listeners.http.anonymous is false), the "
                + "pages of all other origins may do so, too."
        ),
    ]
}
