// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

@Suite(.inTurns, .timeLimit(.minutes(1))) struct LateEventsTests {
    @Test func `typing comes behind messages and answers`() async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.mqtt("one", .v5)
            let loop = try #require(harness.environment.loops.all.first { $0.connectionCount > 0 })
            let user = try #require(UserID(7))
            let counts = try await loop.eventLoop.submit { () throws -> [Int] in
                let connection = try #require(loop.connections.first)
                let typing = EphemeralEvent.typing(.direct(between: user, and: user), by: user, stopped: false)
                var late = LateEvents()
                for _ in 0..<20 { late.append([.ephemeral(connection, typing), .run {}]) }
                let full = [late.events.count, late.ephemeral.count]
                let presence = EphemeralEvent.presence(user, isOnline: true, lastSeen: nil)
                late.append([.ephemeral(connection, presence)])
                late.removeFirst(20)
                let isEmpty = late.isEmpty
                late.removeFirstEphemeral(20)
                guard case .ephemeral(_, presence)? = late.takeEphemeral() else { return [] }
                return full + [isEmpty ? 1 : 0, late.isEmpty ? 1 : 0]
            }.get()
            #expect(counts == [20, 20, 0, 1])
        }
    }

    @Test func `the memory of very many events is given back after them`() throws {
        /// The address of the queue's memory. All queues without allocated memory have the same address.
        func memory(_ late: LateEvents) throws -> UInt {
            try #require(MemoryLayout.size(ofValue: late.events) == MemoryLayout<UInt>.size)
            return unsafeBitCast(late.events, to: UInt.self)
        }
        var late = LateEvents()
        let none = try memory(late)
        late.append([LoopEvent](repeating: .run {}, count: 1_000)[...])
        late.removeFirst(999)
        #expect(try memory(late) != none)
        late.removeFirst(1)
        #expect(try memory(late) == none)
    }

    @Test func `what may be lost is dropped where very much waits`() throws {
        let user = try #require(UserID(7))
        let device = try #require(DeviceID("phone"))
        let typing = EphemeralEvent.typing(.direct(between: user, and: user), by: user, stopped: false)
        let presence = EphemeralEvent.presence(user, isOnline: true, lastSeen: nil)
        let signal = EphemeralEvent.signal(from: user, device: device, payload: Array(repeating: 0, count: 16_384))
        let waiting = WaitingEphemera()
        for _ in 0..<WaitingEphemera.maxSmall { #expect(waiting.add(typing)) }
        #expect(!waiting.add(typing) && waiting.isFull)
        #expect(waiting.add(presence), "the caller has looked before it told all")
        waiting.remove(presence)
        var signals = 0
        while waiting.add(signal) { signals += 1 }
        #expect(signals == (WaitingEphemera.max - WaitingEphemera.maxSmall) / 17)
        for _ in 0..<signals { waiting.remove(signal) }
        waiting.remove(typing)
        #expect(!waiting.isFull && waiting.add(typing) && !waiting.add(typing))
    }

    @Test func `an event that is delivered, also to a closed connection, does not wait any more`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5)
            let loop = try #require(harness.environment.loops.all.first { $0.connectionCount > 0 })
            let connection = try await loop.eventLoop.submit { loop.connections.first }.get()
            let taker = try #require(connection)
            let user = try #require(UserID(7))
            let device = try #require(DeviceID("phone"))
            let signal = EphemeralEvent.signal(from: user, device: device, payload: Array(repeating: 0, count: 16_384))
            // This runs on the loop, so that nothing is delivered in the meantime.
            func post() async throws -> (posted: Int, sum: Int) {
                try await loop.eventLoop.submit {
                    ((0..<3_000).count { _ in loop.post(signal, to: taker) }, loop.waiting.sum)
                }.get()
            }
            let most = WaitingEphemera.max / 17
            #expect(try await post() == (most, most * 17))
            while loop.waiting.sum > 0 { await Task.yield() }
            try await client.drop()
            while try await loop.eventLoop.submit({ loop.connectionCount }).get() > 0 {}
            #expect(try await post() == (most, most * 17))
            while loop.waiting.sum > 0 { await Task.yield() }
        }
    }
}
