// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import Hermes

/// The content of the journal if a login happens while a busy app asks for the next event.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct BusyAppTests {
    /// An app that runs on its own event loop.
    private actor App {
        let client: HermesClient
        let executor: LoopExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        /// The number of times that the app has asked for an event.
        private(set) var asked = 0

        init(_ client: HermesClient, on eventLoop: any EventLoop) {
            self.client = client
            executor = LoopExecutor(eventLoop)
        }

        func next() async -> InboxEvent? {
            asked += 1
            return await client.events.makeAsyncIterator().next()
        }
    }

    /// Keeps an event loop busy until `end` is called.
    private struct Hold {
        private let semaphore: DispatchSemaphore

        init(_ eventLoop: any EventLoop) {
            let semaphore = DispatchSemaphore(value: 0)
            self.semaphore = semaphore
            eventLoop.execute { semaphore.wait() }
        }

        func end() { semaphore.signal() }
    }

    private static func withApp(
        _ server: FakeHermesServer,
        _ body: (App, MemoryLocalStore) async throws -> Void
    ) async throws {
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        // No connection shares this loop.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try await body(App(client, on: group.next()), store)
        await client.close()
        try await server.stop()
        try await group.shutdownGracefully()
    }

    /// Lets the app ask for its next event. After the client's event loop has handled its part, the app's event loop is
    /// busy until the body ends.
    private static func asking(_ app: App, _ body: () async throws -> Void) async throws -> InboxEvent? {
        let asked = await app.asked
        let client = Hold(app.client.driver.eventLoop)
        let next = Task { await app.next() }  // Awaited below.
        while await app.asked == asked { try await Task.sleep(for: .milliseconds(2)) }
        let busy = Hold(app.executor.eventLoop)
        client.end()
        try await app.client.driver.eventLoop.submit {}.get()
        do {
            defer { busy.end() }
            try await body()
        }
        return await next.value
    }

    private static func journal(_ store: MemoryLocalStore) -> InboxJournal {
        InboxJournal(store: store, records: store.records(), maxEntries: 10)
    }

    @Test func `an entry that the app took before the server lost it does not move the place after the reset`()
        async throws
    {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            guard connection.number == 1 else { return connection.accept(id: packet.id, head: 1, acknowledged: 1) }
            connection.accept(id: packet.id, head: 2)
            for seq in UInt64(1)...2 { connection.event(seq, "\(seq)") }
        }
        try await Self.withApp(server) { app, store in
            _ = try await app.client.logIn(.token("t"))
            for seq in 1...2 { #expect(await app.next()?.message?.text == "\(seq)") }
            let event = try await Self.asking(app) {
                server.closeConnection()
                while await app.client.driver.events.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            }
            #expect(event?.kind == .inboxReset)
            #expect(Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
            #expect(Self.journal(store).owesReset)
        }
    }

    @Test func `a reset that the app took does not settle the next one`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id, epoch: UInt64(connection.number))
            if connection.number == 1 { connection.close() }
        }
        try await Self.withApp(server) { app, store in
            _ = try await app.client.logIn(.token("t"))
            #expect(await app.next()?.kind == .inboxReset)
            let event = try await Self.asking(app) {
                server.closeConnection()
                while await app.client.driver.events.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            }
            #expect(event?.kind == .inboxReset)
            #expect(Self.journal(store).cursor == Cursor(epoch: 3, seq: 0))
            #expect(Self.journal(store).owesReset)
        }
    }

    @Test func `an entry that the app took before another account's login leaves the journal to that account`()
        async throws
    {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            let uid: UInt32 = connection.number == 1 ? 7 : 9
            connection.accept(id: packet.id, head: 1, token: "token-\(uid)", uid: uid)
            connection.event(1, "for \(uid)", id: "M\(uid)")
        }
        try await Self.withApp(server) { app, store in
            _ = try await app.client.logIn(.password(nickName: "ann", password: "a"))
            #expect(await app.next()?.message?.text == "for 7")
            let event = try await Self.asking(app) {
                _ = try await app.client.logIn(.password(nickName: "cay", password: "c"))
            }
            #expect(event?.message?.text == "for 9")
            #expect(Self.journal(store).account?.uid == 9)
            #expect(Self.journal(store).recent.isEmpty)
        }
    }
}
