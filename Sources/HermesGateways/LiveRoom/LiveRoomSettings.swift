// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The rules of rooms on the LiveRoom port.
package struct LiveRoomSettings: GatewayOptions {
    /// The handling of the application's own frame types.
    package enum ApplicationTypes: String, CaseIterable, Sendable {
        case forward
        case drop
    }

    /// The room of a new connection.
    package var room = "lobby"
    /// The longest time without a heartbeat. A client that sends no heartbeat for longer than this is removed.
    package var silence = Duration.seconds(10)
    package var applicationTypes = ApplicationTypes.forward
    /// The longest body of a frame, in bytes.
    package var maxBodyBytes = 65_536
    /// Whether a connection without an account may enter rooms.
    package var isAnonymousAllowed = true

    package init() {}

    package mutating func requireAccount() { isAnonymousAllowed = false }
}

extension GatewaySettings {
    package var room: LiveRoomSettings {
        get { self[LiveRoomGateway.self] }
        set { self[LiveRoomGateway.self] = newValue }
    }
}

extension LiveRoomSettings {
    package static let fields: [SettingField<Self>] = [
        .text(
            \.room,
            "liveroom.room",
            maxBytes: 64,
            "The room that a new connection enters."
        ),
        .duration(
            \.silence,
            "liveroom.silence",
            in: .seconds(1) ... .seconds(3600),
            "The time after which a client that sends no heartbeat is removed."
        ),
        .choice(
            \.applicationTypes,
            "liveroom.applicationTypes",
            "Whether frames of the application's own types are forwarded or dropped. For clients that have not sent an "
                + "enter frame, these are all types except 0 to 3, 8 and 9. For other clients, they are the types 16 "
                + "to 65535."
        ),
        .byteCount(
            \.maxBodyBytes,
            "liveroom.frame",
            in: 256...(1 << 20),
            "The longest body of a LiveRoom frame. If a body is longer, the server closes the connection."
        ),
    ]
}
