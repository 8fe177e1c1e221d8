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
    package var room: String
    /// The longest time without a heartbeat. A client that sends no heartbeat for longer than this is removed.
    package var silence: Duration
    package var applicationTypes: ApplicationTypes
    /// The longest body of a frame, in bytes.
    package var maxBodyBytes: Int
    /// Whether a connection without an account may enter rooms.
    package var isAnonymousAllowed: Bool

    package init(
        room: String = "lobby",
        silence: Duration = .seconds(10),
        applicationTypes: ApplicationTypes = .forward,
        maxBodyBytes: Int = 65_536,
        isAnonymousAllowed: Bool = true
    ) {
        self.room = room
        self.silence = silence
        self.applicationTypes = applicationTypes
        self.maxBodyBytes = maxBodyBytes
        self.isAnonymousAllowed = isAnonymousAllowed
    }

    package init() { self.init(room: "lobby") }

    package mutating func requireAccount() { isAnonymousAllowed = false }
}

extension GatewaySettings {
    package var room: LiveRoomSettings {
        get { self[LiveRoomGateway.self] }
        set { self[LiveRoomGateway.self] = newValue }
    }
}

extension LiveRoomSettings {
    private static let defaults = LiveRoomSettings()

    private static let room = Setting.text(
        "liveroom.room",
        default: defaults.room,
        maxBytes: 64,
        "The room that a new connection enters."
    )
    private static let silence = Setting.duration(
        "liveroom.silence",
        default: defaults.silence,
        in: .seconds(1) ... .seconds(3600),
        "The time after which a client that sends no heartbeat is removed."
    )
    private static let applicationTypes = Setting<ApplicationTypes>.choice(
        "liveroom.applicationTypes",
        default: defaults.applicationTypes,
        "Whether frames of the application's own types are forwarded or dropped. For clients that have not sent "
            + "an enter frame, these are all types except 0 to 3, 8 and 9. For other clients, they are the types 16 to "
            + "65535."
    )
    private static let body = Setting.byteCount(
        "liveroom.frame",
        default: defaults.maxBodyBytes,
        in: 256...(1 << 20),
        "The longest body of a LiveRoom frame. If a body is longer, the server closes the connection."
    )

    /// The settings below `liveroom`.
    package static let settings: [SettingDescriptor] = [
        room.descriptor, silence.descriptor, applicationTypes.descriptor, body.descriptor,
    ]

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            room: try values.value(of: Self.room),
            silence: try values.value(of: Self.silence),
            applicationTypes: try values.value(of: Self.applicationTypes),
            maxBodyBytes: try values.value(of: Self.body)
        )
    }
}
