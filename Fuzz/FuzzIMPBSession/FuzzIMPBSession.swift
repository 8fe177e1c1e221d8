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
public func fuzzIMPBSession(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    IMPBProtocol.fuzzer.run(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}

private enum IMPBProtocol: FuzzedProtocol {
    nonisolated(unsafe) static let fuzzer = SessionFuzzer<Self>()  // libFuzzer calls from one thread.

    typealias Served = IMPBGateway
    typealias Decoder = IMPBFrameDecoder

    static var isOnlineAfterOpening: Bool { true }

    static func opening(_ account: FuzzAccount, device: String) -> [UInt8] {
        var login = IMPB_login_request()
        login.nickName = account.nickName
        login.pwd = FuzzAccount.password
        login.deviceID = device
        var user = IMPB_User_msg()
        user.cmd = .login
        var common = IMPB_Common()
        common.method = .user
        var buffer = ByteBuffer()
        do {
            user.body = try login.serializedBytes()
            common.body = try user.serializedBytes()
            try IMPBFrame.write(common, seq: 1, type: .request, into: &buffer)
        } catch {
            broken("\(error)")
        }
        return Array(buffer.readableBytesView)
    }

    static var probe: [UInt8] { [IMPBFrame.magic, 0, 0, 0, 7, IMPBFrameType.ping.rawValue, 0, 0] }

    static func answersProbe(_ frame: IMPBFrame) -> Bool { frame.type == .ping && frame.seq == 7 }

    static func check(_ frame: IMPBFrame) {
        let isReadable =
            switch frame.type {
            case .request: (try? IMPB_CommonRespon(wire: frame.body)) != nil
            case .message: (try? IMPB_base_msg(wire: frame.body)) != nil
            case .notification: (try? IMPB_Notification_msg(wire: frame.body)) != nil
            case .ping: true
            default: false
            }
        invariant(isReadable, "the server sent a frame that cannot be read: \(frame)")
    }
}
