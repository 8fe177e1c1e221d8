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
public func fuzzDelimitedSession(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    DelimitedProtocol.fuzzer.run(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}

private enum DelimitedProtocol: FuzzedProtocol {
    nonisolated(unsafe) static let fuzzer = SessionFuzzer<Self>()  // libFuzzer calls from one thread.

    typealias Served = DelimitedGateway
    typealias Decoder = DelimitedFrameDecoder

    static var isOnlineAfterOpening: Bool { true }

    static func opening(_ account: FuzzAccount, device: String) -> [UInt8] {
        var packet = Hermes_V1_Packet()
        packet.id = 1
        packet.authenticate.password.nickName = account.nickName
        packet.authenticate.password.password = FuzzAccount.password
        packet.authenticate.device.id = device
        return bytes(packet)
    }

    static var probe: [UInt8] {
        var packet = Hermes_V1_Packet()
        packet.id = 7
        packet.ping = Hermes_V1_Ping()
        return bytes(packet)
    }

    static func answersProbe(_ frame: DelimitedFrame) -> Bool { (try? frame.packet())?.id == 7 }

    /// A packet, and one that JSON can tell as well.
    static func check(_ frame: DelimitedFrame) {
        guard let packet = try? frame.packet(maxParts: nil) else {
            broken("the server sent what is no packet: \(frame.body)")
        }
        invariant((try? packet.jsonUTF8Bytes() as [UInt8]) != nil, "JSON cannot tell what the server sent: \(packet)")
    }

    private static func bytes(_ packet: Hermes_V1_Packet) -> [UInt8] {
        var buffer = ByteBuffer()
        do { try DelimitedFrame.write(packet, into: &buffer) } catch { broken("\(error)") }
        return Array(buffer.readableBytesView)
    }
}
