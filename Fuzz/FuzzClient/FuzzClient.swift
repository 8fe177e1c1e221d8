// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FuzzSupport
import Hermes
import NIOPosix

/// The entry that libFuzzer calls.
///
/// The first byte says which client meets the hostile server: its lower three bits the protocol (``Victim``); bit 3, the
/// login is answered well before what follows; bit 4, in pieces of seven bytes; bit 5, a request for a WebSocket is refused or
/// answered badly by what follows. The rest is what the server says, in parts that lie between ``separator``s: each when the
/// client has said something.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzClient(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    guard let mode = input.first, let victim = Victim(rawValue: mode & 7) else { return -1 }
    Arena.shared.run(victim, mode: mode, parts: input.dropFirst().parts(separatedBy: separator))
    return 0
}

/// One hostile server for all inputs, and the clients that meet it one after the other.
final class Arena {
    nonisolated(unsafe) static let shared = Arena()  // libFuzzer calls from one thread.

    /// So many seconds a client may take to see that its connection has ended and that it is not to come back. Longer than
    /// any of its own times, but for that of an idle connection.
    private static let patience = 30

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let server: HostileServer
    private let conditions = DeviceConditions()

    private init() { server = HostileServer(group: group) }

    func run(_ victim: Victim, mode: UInt8, parts: [[UInt8]]) {
        var script = HostileServer.Script()
        script.parts = parts
        if mode & 8 != 0 { script.parts[0] = victim.welcome + script.parts[0] }
        script.pieceBytes = mode & 16 != 0 ? 7 : 4_096
        script.grantsWebSocket = victim == .webSocket && mode & 32 == 0
        server.set(script)
        let done = DispatchSemaphore(value: 0)
        let (port, conditions) = (server.port, conditions)
        let meeting: @Sendable () async -> Void = {
            // Refused, closed, broken: whatever a client tells its app is well.
            try? await victim.meet(port: port, conditions: conditions)
            done.signal()
        }
        // The bridge from libFuzzer's thread to asynchronous code.
        Task { await meeting() }
        // In steps: time in which this whole process is stopped does not count.
        for _ in 0..<Self.patience where done.wait(timeout: .now() + .seconds(1)) == .success { return }
        broken("the client of \(victim) does not end")
    }
}
