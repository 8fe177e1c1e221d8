// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// What a LiveRoom listener allows; plain values, so that the state machine stays free of configuration.
package struct LiveRoomRules: Sendable, Hashable {
    /// The room a connection belongs to from the moment it is accepted.
    package var room: RoomName
    /// Whether the application's own types (16 to 65,535) are forwarded.
    package var forwardsApplicationTypes: Bool
    /// Whether a viewer is in no room until it has entered with an access token.
    package var requiresAccount: Bool
    /// The longest join body that is kept in order to announce the leave of a viewer that is lost, in bytes.
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
