// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesCore

/// Slow requests that a client publishes to `hermes/v1/up` without waiting for the answers.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTInboxTurnTests {
    /// A read that occupies a place of the gate until the test ends it.
    private struct Occupant {
        private let door: AsyncStream<Void>.Continuation
        private let read: Task<Void, Never>

        init(_ gate: ReadGate) {
            let (stream, door) = AsyncStream<Void>.makeStream()
            self.door = door
            read = Task {
                _ = try? await gate.turn(of: .server) { () async throws(HermesError) in
                    for await _ in stream {}
                }
            }
        }

        func leave() async {
            door.finish()
            await read.value
        }
    }

    @Test func `requests that arrive in one read use the store one at a time, and are answered in order`()
        async throws
    {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            var connect = MQTTConnect(version: .v5, clientID: "tablet")
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
            #expect(try await client.untilPong().isEmpty)
            // All places are taken, so each read of the client waits where the test sees it.
            let gate = harness.messenger.messages.reads
            let source = CommitSource.account(ann.principal.user)
            while gate.running > 0 { await Task.yield() }
            var occupants = (0..<gate.maxRunning).map { _ in Occupant(gate) }
            while gate.running < gate.maxRunning { await Task.yield() }

            let ids = UInt64(1)...20
            var bytes = ByteBuffer()
            for id in ids {
                var request = Hermes_V1_Packet()
                request.id = id
                request.synchronize.limit = 1
                let publish = MQTTPublish(topic: "hermes/v1/up", payload: try request.wireBuffer(), qos: .atMostOnce)
                try MQTTPacket.publish(publish).write(into: &bytes, version: .v5)
            }
            try await client.wire.send(bytes)
            for id in ids {
                while gate.waiting(of: source) == 0 { await Task.yield() }
                // The connection would handle the next request now if it did not wait for the answer.
                await harness.turnsAreTaken()
                #expect(gate.waiting(of: source) == 1)
                // The next occupant gets the place after this read, so the read of the next request waits, too.
                occupants.append(Occupant(gate))
                while gate.waiting(of: .server) == 0 { await Task.yield() }
                await occupants.removeFirst().leave()
                let answer = try Hermes_V1_Packet(wire: try await client.publication().payload)
                #expect(answer.id == id)
                guard case .result(let result) = answer.body, case .synchronized = result.value else {
                    throw Unexpected("\(answer)")
                }
            }
            for occupant in occupants { await occupant.leave() }
            #expect(try await client.untilPong().isEmpty)
        }
    }
}
