// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

typealias WireMessage = SwiftProtobuf.Message

/// Translates room events to packets.
enum DelimitedRoomTranslation {
    /// Returns a complete frame with the event in a publication; an empty buffer if the publication has no readable
    /// event.
    static func frame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // This cannot fail, because the message has no required fields and is far below 4 GiB.
        try? DelimitedFrame.write(packet, into: &frame)
        return frame
    }

    /// Returns a complete frame like ``frame(for:)``, but with the packet as JSON.
    static func jsonFrame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // This cannot fail, because every room event has a JSON form.
        try? DelimitedFrame.write(json: packet, into: &frame)
        return frame
    }

    static func packet(for publication: Publication) -> Hermes_V1_Packet? {
        RoomEvent(publication).map(packet(for:))
    }

    static func packet(for event: RoomEvent) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.ephemeral.room = Hermes_V1_RoomEvent(event)
        return packet
    }
}
