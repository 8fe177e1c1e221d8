// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesGateways

/// One message may cause events for thousands of devices. Its encoding is shared, its delivery takes turns, and its
/// sender pays.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct EncodedEntriesTests {
    private func key(_ seq: UInt64, reader: Int32 = 1, form: String = "a") throws -> EncodedEntries.Key {
        try EncodedEntries.Key(reader: #require(UserID(reader)), seq: seq, form: form)
    }

    @Test func `the devices of a user share an encoding`() throws {
        var entries = EncodedEntries()
        var made = 0
        func frame(_ key: EncodedEntries.Key) -> ByteBuffer {
            entries.frame(key) { buffer in
                made += 1
                buffer.writeRepeatingByte(UInt8(made), count: 2_000)
            }
        }
        let first = frame(try key(1))
        for _ in 0..<50 { #expect(frame(try key(1)) == first) }
        #expect(made == 1)
        // Other entries, readers and forms have other frames.
        #expect(frame(try key(2)) != first)
        #expect(frame(try key(1, reader: 2)) != first)
        #expect(frame(try key(1, form: "b")) != first)
        #expect(made == 4)
        entries.removeAll()
        #expect(entries.bytes == 0)
        #expect(frame(try key(1)) != first)
    }

    @Test func `what is kept is bounded`() throws {
        var entries = EncodedEntries()
        var made: [UInt64] = []
        for seq in [1, 2, 3, 1, 3, 4] as [UInt64] {
            _ = entries.frame(try key(seq)) { buffer in
                made.append(seq)
                buffer.writeRepeatingByte(7, count: EncodedEntries.maxBytes / 2)
            }
            #expect(entries.bytes <= EncodedEntries.maxBytes)
        }
        // The third frame replaced the first.
        #expect(made == [1, 2, 3, 1, 4])
        let tooLong = entries.frame(try key(9)) { $0.writeRepeatingByte(7, count: EncodedEntries.maxBytes) }
        #expect(tooLong.readableBytes == EncodedEntries.maxBytes && entries.bytes <= EncodedEntries.maxBytes)
    }

    @Test func `events of other threads take turns`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let context = try #require(LoopContexts(group)[loop])
        let seen = Mutex<[Int]>([])
        let others = Mutex<[Int]>([])
        let count = 400
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            @Sendable func other() {
                let done = seen.withLock { $0.count }
                others.withLock { $0.append(done) }
                if done < count { loop.execute(other) } else { continuation.resume() }
            }
            loop.execute {
                // The clock advances 5 ms each time it is read.
                var time = NIODeadline.now()
                context.replacedTurnClock = {
                    time = time + .milliseconds(5)
                    return time
                }
                for number in 0..<count { context.post(.run { seen.withLock { $0.append(number) } }) }
                loop.execute(other)
            }
        }
        try await group.shutdownGracefully()
        #expect(seen.withLock { $0 } == Array(0..<count))
        // The loop did other work in between.
        let stages = Set(others.withLock { $0 })
        #expect(stages.count > 10, "\(stages.sorted())")
    }

    @Test func `a message pays for devices`() {
        #expect(RequestCost.devices(50, bytes: 60_000).units == 50 + 183)
        #expect(RequestCost.devices(0, bytes: 60_000).units == 0)
    }
}
