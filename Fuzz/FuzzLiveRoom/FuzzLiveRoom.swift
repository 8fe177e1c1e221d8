// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLiveRoom(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    fuzz(input, with: LiveRoomFrameDecoder.self, limit: 1_024, isExact: true) { frame in
        let isValid = (try? frame.validateBody()) != nil
        let isMessage: Bool
        switch frame.type {
        case .join, .leave: isMessage = fuzz(frame.body, as: LiveRoom_UserInfo.self) != nil
        case .text: isMessage = fuzz(frame.body, as: LiveRoom_ChatMessage.self) != nil
        case .gift: isMessage = fuzz(frame.body, as: LiveRoom_GiftMessage.self) != nil
        case .notice: isMessage = fuzz(frame.body, as: LiveRoom_SystemNotice.self) != nil
        case .kicked: isMessage = fuzz(frame.body, as: LiveRoom_Kicked.self) != nil
        case .enter: isMessage = fuzz(frame.body, as: LiveRoom_Enter.self) != nil
        case .heartbeat: isMessage = true
        default: isMessage = frame.type.isApplicationDefined
        }
        invariant(isValid == isMessage, "validation and parsing do not agree")
    }
    return 0
}
