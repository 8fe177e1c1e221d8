// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzServer
import FuzzSupport
import HermesGateways
import HermesWire
import NIOCore

/// The entry that libFuzzer calls.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzQSIOPSession(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    QSIOPProtocol.fuzzer.run(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}

private enum QSIOPProtocol: FuzzedProtocol {
    nonisolated(unsafe) static let fuzzer = SessionFuzzer<Self>()  // libFuzzer calls from one thread.

    typealias Served = QSIOPGateway
    typealias Decoder = QSIOPFrameDecoder

    static var isOnlineAfterOpening: Bool { false }

    static func opening(_ account: FuzzAccount, device: String) -> [UInt8] {
        let body = ByteBuffer(string: "userid:\(account.uid)\ntoken:\(account.token)\ndevice:\(device)\n")
        return bytes(QSIOPFrame(.report, body: body))
    }

    static var probe: [UInt8] { bytes(QSIOPFrame(.ping)) }

    static func answersProbe(_ frame: QSIOPFrame) -> Bool { frame.operation == .pong }

    static func check(_ frame: QSIOPFrame) {
        invariant((try? frame.properties()) != nil, "the server sent properties that cannot be read: \(frame.body)")
    }

    private static func bytes(_ frame: QSIOPFrame) -> [UInt8] {
        var buffer = ByteBuffer()
        do { try frame.write(into: &buffer) } catch { broken("\(error)") }
        return Array(buffer.readableBytesView)
    }
}
