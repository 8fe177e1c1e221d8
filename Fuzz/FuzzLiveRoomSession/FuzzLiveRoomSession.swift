// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzServer
import FuzzSupport
import HermesGateways
import HermesWire
import NIOCore
import SwiftProtobuf

/// The entry that libFuzzer calls.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLiveRoomSession(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    LiveRoomProtocol.fuzzer.run(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}

private enum LiveRoomProtocol: FuzzedProtocol {
    nonisolated(unsafe) static let fuzzer = SessionFuzzer<Self>()  // libFuzzer calls from one thread.

    typealias Served = LiveRoomGateway
    typealias Decoder = LiveRoomFrameDecoder

    static var isOnlineAfterOpening: Bool { false }

    static func opening(_ account: FuzzAccount, device: String) -> [UInt8] {
        var enter = LiveRoom_Enter()
        enter.room = "lobby"
        enter.token = account.token
        enter.deviceID = device
        return bytes(.enter, enter) + probe
    }

    /// Comes back to who sent it.
    static var probe: [UInt8] {
        var user = LiveRoom_UserInfo()
        user.level = 1
        user.name = "probe"
        user.iconURL = ""
        return bytes(.join, user)
    }

    static func answersProbe(_ frame: LiveRoomFrame) -> Bool { frame.type == .join }

    static func check(_ frame: LiveRoomFrame) {}

    private static func bytes(_ type: LiveRoomFrameType, _ message: some SwiftProtobuf.Message) -> [UInt8] {
        var buffer = ByteBuffer()
        do { try LiveRoomFrame.write(message, type: type, into: &buffer) } catch { broken("\(error)") }
        return Array(buffer.readableBytesView)
    }
}
