// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Synchronization
import Testing

@testable import HermesGateways

/// The budget of all unauthenticated connections.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct LoginBudgetTests {
    /// Records which connections were ended.
    private final class Ends: Sendable {
        private let names = Mutex<[Int]>([])
        func add(_ name: Int) { names.withLock { $0.append(name) } }
        func take() -> [Int] {
            names.withLock { names in
                defer { names = [] }
                return names
            }
        }
    }

    @Test func `who has sent most pays`() {
        let ends = Ends()
        let budget = LoginBudget(limit: 100)
        let shares = (0..<4).map { number in budget.share { ends.add(number) } }
        for (share, bytes) in zip(shares, [10, 40, 30, 20]) { budget.charge(bytes, to: share) }
        #expect(budget.bytes == 100 && ends.take().isEmpty)
        #expect(budget.charge(1, to: shares[0]))
        #expect(budget.bytes == 61 && ends.take() == [1])
        // This connection has ended. Its further input does not count.
        #expect(!budget.charge(1_000, to: shares[1]))
        budget.release(shares[1])
        #expect(budget.bytes == 61 && ends.take().isEmpty)
        // A connection is ended for its own input if it has sent the most.
        #expect(!budget.charge(90, to: shares[3]))
        #expect(budget.bytes == 41 && ends.take() == [3])
        budget.release(shares[0])
        budget.release(shares[2])
        #expect(budget.bytes == 0)
    }

    @Test func `many come and go`() {
        let ends = Ends()
        let limit = 10_000
        let budget = LoginBudget(limit: limit)
        var model: [Int: Int] = [:]
        var shares: [Int: LoginBudget.Share] = [:]
        for step in 0..<20_000 {
            let number = Int.random(in: 0..<200)
            if let share = shares[number], step % 3 == 0 {
                budget.release(share)
                (shares[number], model[number]) = (nil, nil)
            } else {
                let share = shares[number] ?? budget.share { ends.add(number) }
                shares[number] = share
                let bytes = Int.random(in: 1...300)
                budget.charge(bytes, to: share)
                model[number, default: 0] += bytes
                for over in ends.take() {
                    #expect(model[over] == model.values.max())
                    (shares[over], model[over]) = (nil, nil)
                }
            }
            #expect(budget.bytes == model.values.reduce(0, +) && budget.bytes <= limit)
        }
    }

    @Test
    func `over the limit the stranger that has sent most is closed, and the others log in`() async throws {
        var settings = GatewaySettings()
        settings.limits.maxLoginBytes = 100_000
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let most = String(repeating: "x", count: 65_535)
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.will = MQTTWill(topic: "t", payload: ByteBuffer(string: most))
            var whole = ByteBuffer()
            try MQTTPacket.connect(connect).write(into: &whole, version: .v5)
            let half = try #require(whole.getSlice(at: 0, length: 60_000))
            let first = try await MQTTTestClient.open(harness)
            try await first.wire.send(half)
            while harness.environment.loginBudget.bytes < 60_000 { await Task.yield() }
            // When the limit is exceeded, the first connection has still sent the most.
            let second = try await MQTTTestClient.open(harness)
            try await second.wire.send(try #require(whole.getSlice(at: 0, length: 41_000)))
            #expect(try await first.untilEnd().isEmpty)
            try await second.wire.send(try #require(whole.getSlice(at: 41_000, length: whole.readableBytes - 41_000)))
            guard case .connack(let connack) = try await second.next() else { throw Unexpected("no CONNACK") }
            #expect(connack.reason == .success)
            #expect(harness.environment.loginBudget.bytes == 0)
        }
    }
}
