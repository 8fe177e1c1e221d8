// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates room events to packets.
enum NativeRoomTranslation {
    static func packet(for publication: Publication) -> Hermes_V1_Packet? {
        RoomEvent(publication).map(packet(for:))
    }

    static func packet(for event: RoomEvent) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.ephemeral.room = Hermes_V1_RoomEvent(event)
        return packet
    }
}
