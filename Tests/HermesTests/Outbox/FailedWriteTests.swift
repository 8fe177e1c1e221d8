// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import Testing

@testable import Hermes

/// The outbox while the store cannot write.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct FailedWriteTests {
    /// A store that holds back one write of the outbox when the test requests it. This write then fails.
    private final class Holding: LocalStore {
        private struct State: Sendable {
            var isArmed = false
            var held: (@Sendable (Result<Void, any Error>) -> Void)?
        }
        private let store = MemoryLocalStore()
        private let state = NIOLockedValueBox(State())

        var isHolding: Bool { state.withLockedValue { $0.held != nil } }

        func records() -> [LocalRecord] { store.records() }

        /// Holds back the next write.
        func hold() { state.withLockedValue { $0.isArmed = true } }

        /// Makes the held write fail.
        func fail() {
            let held = state.withLockedValue { state in
                defer { state = State() }
                return state.held
            }
            held?(.failure(HermesClientError(.storeFailed, "no space")))
        }

        func write(
            _ changes: [LocalChange],
            durably: Bool,
            completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) {
            let isOutbox = changes.contains { $0.key.hasPrefix("outbox/") }
            let isHeld = state.withLockedValue { state in
                guard isOutbox, state.isArmed else { return false }
                state.isArmed = false
                state.held = completion
                return true
            }
            if !isHeld { store.write(changes, durably: durably, completion: completion) }
        }
    }

    private static func client(_ server: FakeHermesServer, _ store: Holding) async throws -> HermesClient {
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        return client
    }

    /// Waits until the outbox has begun the write that the store holds back.
    private static func waitUntilHeld(_ store: Holding) async throws {
        while !store.isHolding {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    @Test func `what is behind a refused message is sent although its retry could not be stored`() async throws {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send) where send.content.text == "refused":
                connection.refuse(2003, "bob has blocked you", id: packet.id)
            case .send(let send) where send.content.text == "held": held.append((send, packet.id))
            case .send(let send):
                for (send, id) in held.all { connection.receipt(for: send, id: id) }
                connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let store = Holding()
        defer { store.fail() }
        let client = try await Self.client(server, store)
        let refused = try await client.send(.text("refused"), to: .user(8), clientID: "refused")
        await #expect(throws: HermesClientError.self) { try await refused.receipt() }
        let first = try await client.send("held", to: .user(8))
        let second = try await client.send("behind it", to: .user(8))
        _ = await server.firstPacket { _, packet in packet.send.content.text == "held" }
        store.hold()
        let retry = Task { try await client.outbox.retry(clientID: "refused") }  // Awaited below.
        try await Self.waitUntilHeld(store)
        // The server now sends the receipts of both conversations.
        _ = try await client.send("go", to: .user(9)).receipt()
        _ = try await first.receipt()
        store.fail()
        let error = await #expect(throws: HermesClientError.self) { try await retry.value }
        #expect(error?.code == .storeFailed)
        #expect(try await second.receipt().clientID == second.id)
        #expect(await client.outbox.entries.map(\.id) == ["refused"])
        await client.close()
        try await server.stop()
    }

    /// The server has committed the message and then refused its repetition for an hour.
    @Test func `what is behind a discarded message is sent although the store could not remove it`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send) where send.clientID == "one":
                connection.refuse(3002, "overloaded", retryAfter: 3_600_000, id: packet.id)
            case .send(let send):
                connection.event(1, "discarded", own: "one")
                connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let store = Holding()
        defer { store.fail() }
        let client = try await Self.client(server, store)
        _ = try await client.send(.text("discarded"), to: .user(8), clientID: "one")
        while await client.outbox.entries.map(\.status) != [.queued] {
            try Task.checkCancellation()
            await Task.yield()
        }
        let second = try await client.send("behind it", to: .user(8))
        store.hold()
        let discard = Task { try await client.outbox.discard(clientID: "one") }  // Awaited below.
        try await Self.waitUntilHeld(store)
        store.fail()
        let error = await #expect(throws: HermesClientError.self) { try await discard.value }
        #expect(error?.code == .storeFailed)
        #expect(try await second.receipt().clientID == second.id)
        // The app gets the message as if another device had sent it.
        #expect(await client.events.makeAsyncIterator().next()?.message?.text == "discarded")
        // The removal was repeated together with the next one.
        #expect(store.records().allSatisfy { !$0.key.hasPrefix("outbox/") })
        await client.close()
        try await server.stop()
    }
}
