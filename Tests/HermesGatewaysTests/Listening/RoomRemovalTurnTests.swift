// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesGateways

@Suite(.inTurns, .timeLimit(.minutes(1))) struct RoomRemovalTurnTests {
    /// A connection that reports when it is examined.
    private final class ExaminedConnection: ConnectionEvents {
        private let isMember: Bool
        private let examined: () -> Void

        init(isMember: Bool, _ examined: @escaping () -> Void) {
            self.isMember = isMember
            self.examined = examined
        }

        func accessChanged() {}

        func removed(by expulsion: RoomExpulsion) -> Bool {
            examined()
            return isMember
        }
    }

    @Test func `a removal from a room examines all connections, and takes turns with other work`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let context = try #require(LoopContexts(group)[loop])
        let examined = Mutex(0)
        let stages = Mutex([0])
        let count = 200
        let removed = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
            @Sendable func other() {
                let done = examined.withLock { $0 }
                stages.withLock { $0.append(done) }
                if done < count { loop.execute(other) }
            }
            loop.execute {
                let listener = ListenerState(
                    name: "test",
                    limits: ConnectionLimits(),
                    idleTimeout: .seconds(60),
                    maxFrameBytes: 60_000,
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
                )
                for number in 0..<count {
                    let connection = Connection(loop: context, listener: listener, requiresAuthentication: false)
                    connection.events = ExaminedConnection(isMember: number % 2 == 0) { examined.withLock { $0 += 1 } }
                    context.add(connection)
                }
                // The clock advances 5 ms each time it is read.
                var time = NIODeadline.now()
                context.replacedTurnClock = {
                    time = time + .milliseconds(5)
                    return time
                }
                context.remove(RoomExpulsion(of: nil, from: .lobby)) { removed in
                    for connection in context.connections { context.remove(connection) }
                    continuation.resume(returning: removed)
                }
                loop.execute(other)
            }
        }
        try await group.shutdownGracefully()
        #expect(removed == count / 2)
        #expect(examined.withLock { $0 } == count)
        let seen = stages.withLock { $0 }
        let atOnce = zip(seen, seen.dropFirst() + [count]).map { $0.1 - $0.0 }
        #expect((atOnce.max() ?? count) < 10, "\(atOnce)")
    }
}
