// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import Testing

@testable import Hermes

/// The results of `send`, and the times at which the app gets them.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct SendTests {
    /// A server that holds back its receipts until the text "go" arrives in another conversation.
    private static func server(_ held: Log<(Hermes_V1_Send, UInt64)>) async throws -> FakeHermesServer {
        try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send) where send.content.text == "go":
                for (send, id) in held.all { connection.receipt(for: send, id: id, seq: 1) }
                connection.receipt(for: send, id: packet.id, seq: 2)
            case .send(let send) where send.content.text == "no":
                connection.refuse(2003, "bob has blocked you", id: packet.id)
            case .send(let send): held.append((send, packet.id))
            default: break
            }
        }
    }

    /// A store that delays the outbox's writes until the test sets their result.
    private final class Holding: LocalStore {
        private struct State: Sendable {
            var held: [@Sendable (Result<Void, any Error>) -> Void] = []
            /// The result of all these writes; nil if they are delayed.
            var end: Result<Void, any Error>?
        }
        private let store = MemoryLocalStore()
        private let state = NIOLockedValueBox(State())

        var isHolding: Bool { state.withLockedValue { !$0.held.isEmpty } }

        func records() -> [LocalRecord] { store.records() }

        func end(_ result: Result<Void, any Error>) {
            let held = state.withLockedValue { state in
                defer { state = State(end: result) }
                return state.held
            }
            for completion in held { completion(result) }
        }

        func write(
            _ changes: [LocalChange],
            durably: Bool,
            completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) {
            guard changes.contains(where: { $0.key.hasPrefix("outbox/") }) else {
                return store.write(changes, durably: durably, completion: completion)
            }
            let end = state.withLockedValue { state in
                if state.end == nil { state.held.append(completion) }
                return state.end
            }
            if let end { completion(end) }
        }
    }

    @Test(arguments: [false, true]) func `a repeated call ends like the first`(isStored: Bool) async throws {
        let server = try await Self.server(Log())
        let store = Holding()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let ended = Log<Int>()
        let calls = (1...2).map { number in
            Task<String, any Error> {  // Awaited below.
                defer { ended.append(number) }
                return try await client.send(.text("hello"), to: .user(8), clientID: "one").id
            }
        }
        while !store.isHolding { await Task.yield() }
        // In the meantime, the other call also reaches the outbox.
        for _ in 0..<100 { _ = await client.outbox.entries }
        #expect(ended.all.isEmpty)
        store.end(isStored ? .success(()) : .failure(HermesClientError(.storeFailed, "no space")))
        for call in calls {
            switch await call.result {
            case .success(let id): #expect(isStored && id == "one")
            case .failure(let error): #expect(!isStored && (error as? HermesClientError)?.code == .storeFailed)
            }
        }
        #expect(await client.outbox.entries.count == (isStored ? 1 : 0))
        await client.close()
        try await server.stop()
    }

    @Test func `send returns before the server has the message; the receipt follows`() async throws {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send("hello", to: .user(8))
        #expect(await client.outbox.entries.map(\.id) == [sent.id])
        async let early = sent.receipt()
        let other = try await client.send("go", to: .user(9))
        #expect(try await early.clientID == sent.id)
        #expect(try await other.receipt().conversationSeq == 2)
        // A repeated call with the same id returns the same message.
        #expect(try await sent.receipt().messageID.rawValue == "M-" + sent.id)
        #expect(await client.outbox.entries.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a refusal for good is the receipt's error, and the entry stays`() async throws {
        let server = try await Self.server(Log())
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send(.text("no"), to: .user(8), clientID: "one")
        let error = await #expect(throws: HermesClientError.self) { try await sent.receipt() }
        #expect(error?.code == .forbidden)
        let again = try await client.send(.text("no"), to: .user(8), clientID: "one")
        let same = await #expect(throws: HermesClientError.self) { try await again.receipt() }
        #expect(same == error)
        #expect(await client.outbox.entries.map(\.id) == ["one"])
        await client.close()
        try await server.stop()
    }

    @Test func `offline it returns; the receipt is there once there is a server, and its loop may be cancelled`()
        async throws
    {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let port = server.port
        try await server.stop()
        let sent = try await client.send("go", to: .user(8))
        let waiting = Task { try await sent.receipt() }  // Cancelled below.
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        async let receipt = sent.receipt()
        let next = try await FakeHermesServer.scripted(port: port) { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: 3)
            default: break
            }
        }
        #expect(try await receipt.conversationSeq == 3)
        await client.close()
        try await next.stop()
    }

    @Test func `a closed client ends the waiting, and the message stays; a discarded one says so`() async throws {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send("held", to: .user(8))
        let later = try await client.send("behind it", to: .user(8))
        async let early = sent.receipt()
        // The first message is being sent. The second message waits for it.
        while held.all.isEmpty { await Task.yield() }
        #expect(try await client.outbox.discard(clientID: later.id))
        let discarded = await #expect(throws: HermesClientError.self) { try await later.receipt() }
        #expect(discarded?.code == .discarded)
        await client.close()
        do {
            _ = try await early
            Issue.record("there is no receipt")
        } catch {
            #expect((error as? HermesClientError)?.code == .closed)
        }
        let closed = await #expect(throws: HermesClientError.self) { try await sent.receipt() }
        #expect(closed?.code == .closed)
        #expect(await client.outbox.entries.map(\.id) == [sent.id])
        try await server.stop()
    }
}
