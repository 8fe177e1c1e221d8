// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Cuts the bytes of a connection into Delimited frames or into MQTT packets. Both carry the packets of the native
/// protocol.
struct PacketDecoder: FrameDecoder {
    enum Frame: WireFrame {
        case delimited(DelimitedFrame)
        case mqtt(MQTTFrame)

        var encodedBytes: Int {
            switch self {
            case .delimited(let frame): frame.encodedBytes
            case .mqtt(let frame): frame.encodedBytes
            }
        }

        func write(into buffer: inout ByteBuffer) throws(WireError) {
            switch self {
            case .delimited(let frame): try frame.write(into: &buffer)
            case .mqtt(let frame): try frame.write(into: &buffer)
            }
        }
    }

    private enum Framing {
        case delimited(DelimitedFrameDecoder)
        case mqtt(MQTTFrameDecoder)
    }

    private var framing: Framing

    init(maxFrameBytes: Int) { framing = .delimited(DelimitedFrameDecoder(maxFrameBytes: maxFrameBytes)) }

    init(mqtt maxFrameBytes: Int) { framing = .mqtt(MQTTFrameDecoder(maxFrameBytes: maxFrameBytes)) }

    mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> Frame? {
        switch framing {
        case .delimited(var decoder):
            defer { framing = .delimited(decoder) }
            return try decoder.next(from: &buffer).map { .delimited($0) }
        case .mqtt(var decoder):
            defer { framing = .mqtt(decoder) }
            return try decoder.next(from: &buffer).map { .mqtt($0) }
        }
    }
}
