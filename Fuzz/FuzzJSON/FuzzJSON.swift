// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer: protobuf's JSON, as in `hermes/v1/up/json`. Writes the parsed message again, as
/// bytes and as JSON.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = ByteBuffer(bytes: UnsafeRawBufferPointer(start: start, count: count))
    fuzz(json: input, as: Hermes_V1_Packet.self)
    fuzz(json: input, as: Hermes_V1_Content.self)
    // No client sends these as JSON; they have the most enums.
    fuzz(json: input, as: IMPB_C2C_msg.self)
    fuzz(json: input, as: IMPB_group_members_request.self)
    return 0
}
