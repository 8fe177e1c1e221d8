// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

struct MQTTRetainedQueueTests {
    @Test func `tries for a full queue become rare, and begin anew once something found a place`() {
        let queue = MQTTRetainedQueue()
        let stuck = (0..<9).map { _ in queue.nextRetryPause(isStuck: true) }
        #expect(stuck == [1, 2, 4, 8, 16, 32, 64, 64, 64].map { TimeAmount.seconds($0) })
        #expect(queue.nextRetryPause(isStuck: false) == .seconds(1))
        #expect(queue.nextRetryPause(isStuck: true) == .seconds(2))
    }

    /// Each message fills NIO's buffer, but the system accepts the bytes at once. So the channel becomes full and
    /// writable again during one write.
    @Test(.timeLimit(.minutes(1)))
    func `a write that makes the connection writable neither repeats nor skips retained messages`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let payload = String(repeating: "x", count: 40_000)
            let topics = (0..<40).map { "large/\($0)" }
            for topic in topics { _ = try await publisher.publish(topic, payload, retain: true) }
            for round in 0..<5 {
                let client = try await harness.mqtt("reader-\(round)", .v5)
                _ = try await client.subscribe("large/#", qos: .atMostOnce)
                var came: [String] = []
                while came.count < topics.count { came.append(try await client.taken().topic) }
                #expect(Set(came) == Set(topics))
                #expect(try await client.untilPong().isEmpty)
            }
        }
    }
}
