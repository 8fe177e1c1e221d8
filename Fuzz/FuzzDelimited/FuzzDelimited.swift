// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDelimited(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    // Not exact: lengths of zero are skipped, and a length may take more bytes than it needs.
    fuzz(input, with: DelimitedFrameDecoder.self, limit: 1_024, isExact: false) { frame in
        invariant(frame.body.readableBytes > 0, "an empty frame was not skipped")
        fuzz(frame.body, as: Hermes_V1_Packet.self)
    }
    // Also the body alone, so that every input reaches the parser.
    fuzz(ByteBuffer(bytes: input), as: Hermes_V1_Packet.self)
    return 0
}
