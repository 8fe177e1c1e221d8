// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesWire
import NIOCore

/// The packets of a native connection in frames, for a client whose packets no other protocol carries.
extension NativeConnection: GatewayConnection {
    /// Creates the decoder. A frame is the length of its body as a varint, followed by the body, which is a
    /// `hermes.v1.Packet`. If the length is above `maxFrameBytes`, the connection ends.
    package func makeDecoder(maxFrameBytes: Int) -> DelimitedFrameDecoder {
        DelimitedFrameDecoder(maxFrameBytes: maxFrameBytes, takesText: connection.isWebSocket)
    }

    package func received(_ frame: DelimitedFrame) {
        isJSON = frame.isJSON
        if isJSON { connection.charge(.json(frame.body.readableBytes)) }
        let packet: Hermes_V1_Packet
        do {
            // A packet has at most `MessageParts.max` parts. They are counted and charged before the body is parsed.
            packet = try frame.packet { connection.charge(.parts($0)) }
        } catch {
            return connection.end(.malformed(error))
        }
        received(packet)
    }

    func writeFrame(_ packet: Hermes_V1_Packet, _ kind: Publication.DropClass) {
        connection.write(kind) { try encode(packet, into: &$0) }
    }

    /// Writes an entry. A long entry is encoded once for all devices of the account on this loop.
    func writeFrame(_ entry: InboxEntry, for principal: Principal) {
        connection.write(entry, for: principal.user, form: isJSON ? "delimited/json" : "delimited") { buffer in
            try encode(Self.packet(entry, reader: principal), into: &buffer)
        }
    }

    /// Writes a room's event. It is encoded once for all connections of this loop that use the same form.
    func writeFrame(_ delivery: Delivery) {
        let frame =
            isJSON
            ? delivery.encoded(.delimitedJSON, by: Self.jsonFrame)
            : delivery.encoded(.delimited, by: Self.frame)
        guard frame.readableBytes > 0 else { return }
        connection.tally.messagesOut += 1
        connection.write(delivery.publication.dropClass, frame: frame)
    }

    /// Appends a packet in the form that the client has chosen.
    private func encode(_ packet: Hermes_V1_Packet, into buffer: inout ByteBuffer) throws(WireError) {
        if isJSON {
            try DelimitedFrame.write(json: packet, into: &buffer)
        } else {
            try DelimitedFrame.write(packet, into: &buffer)
        }
    }

    /// Returns a complete frame with the event in a publication; an empty buffer if the publication has no readable
    /// event.
    private static func frame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = NativeRoomTranslation.packet(for: publication) else { return frame }
        // This cannot fail, because the message has no required fields and is far below 4 GiB.
        try? DelimitedFrame.write(packet, into: &frame)
        return frame
    }

    /// Returns a complete frame like ``frame(for:)``, but with the packet as JSON.
    private static func jsonFrame(for publication: Publication) -> ByteBuffer {
        var frame = ByteBuffer()
        guard let packet = NativeRoomTranslation.packet(for: publication) else { return frame }
        // This cannot fail, because every room event has a JSON form.
        try? DelimitedFrame.write(json: packet, into: &frame)
        return frame
    }
}
