// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The rules of a LiveRoom listener. They are plain values, so that the state machine needs no configuration.
package struct LiveRoomRules: Sendable, Hashable {
    /// The room of a new connection.
    package var room: RoomName
    /// Whether the application's own types are forwarded.
    package var forwardsApplicationTypes: Bool
    /// Whether a viewer is in no room until it enters with an access token.
    package var requiresAccount: Bool
    /// The largest number of bytes of a join that are kept for announcing the leave of a lost viewer. If a join is
    /// longer, only its level and its name are kept. If even the level and the name are too long, the join is not
    /// forwarded.
    package var maxKeptJoinBytes: Int

    package init(
        room: RoomName,
        forwardsApplicationTypes: Bool = true,
        requiresAccount: Bool = false,
        maxKeptJoinBytes: Int = 1024
    ) {
        self.room = room
        self.forwardsApplicationTypes = forwardsApplicationTypes
        self.requiresAccount = requiresAccount
        self.maxKeptJoinBytes = maxKeptJoinBytes
    }
}
