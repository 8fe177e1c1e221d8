// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzServer
import FuzzSupport
import HermesWire
import NIOCore

extension Peer {
    /// Takes packets until one of a type has come; all of them have to be readable.
    ///
    /// - Returns: false if the server closes.
    func receive(until type: MQTTPacketType) -> Bool {
        receive(with: MQTTFrameDecoder(maxFrameBytes: .max)) { frame in
            invariant(
                (try? MQTTPacket(frame, version: .v5)) != nil,
                "what another client sent makes a packet that cannot be read: \(frame.header) \(frame.body)"
            )
            return frame.type == type
        } != nil
    }

    func send(packet: MQTTPacket, version: MQTTVersion) {
        var bytes = ByteBuffer()
        do { try packet.write(into: &bytes, version: version) } catch { broken("\(error)") }
        send(bytes.readableBytesView)
    }
}
