// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

typealias WireMessage = SwiftProtobuf.Message

/// Room events in packets.
enum DelimitedRoomTranslation {
    /// A complete frame with the event; empty for publications that say nothing.
    static func frame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // Cannot fail: the message has no required fields and is far below 4 GiB.
        try? DelimitedFrame.write(packet, into: &frame)
        return frame
    }

    /// The same with the packet as JSON.
    static func jsonFrame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = packet(for: publication) else { return frame }
        // Cannot fail: every room event has a JSON form.
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
