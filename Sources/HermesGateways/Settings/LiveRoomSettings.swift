// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rules of rooms on the LiveRoom port.
package struct LiveRoomSettings: Sendable, Hashable {
    /// The handling of the application's own frame types.
    package enum ApplicationTypes: String, CaseIterable, Sendable {
        case forward
        case drop
    }

    /// The room of a new connection.
    package var room: String
    /// A client without a heartbeat for longer than this is removed.
    package var silence: Duration
    package var applicationTypes: ApplicationTypes
    /// The longest body of a frame.
    package var maxBodyBytes: Int
    /// Whether a connection without an account may join.
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
}
