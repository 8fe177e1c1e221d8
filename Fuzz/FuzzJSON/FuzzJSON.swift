// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry that libFuzzer calls: protobuf's JSON, as `hermes/v1/up/json` takes it. What was read is written again, as
/// bytes and as JSON.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = ByteBuffer(bytes: UnsafeRawBufferPointer(start: start, count: count))
    fuzz(json: input, as: Hermes_V1_Packet.self)
    fuzz(json: input, as: Hermes_V1_Content.self)
    // No client sends these as JSON; they are the ones with the most enums.
    fuzz(json: input, as: IMPB_C2C_msg.self)
    fuzz(json: input, as: IMPB_group_members_request.self)
    return 0
}
