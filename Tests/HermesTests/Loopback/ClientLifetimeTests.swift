// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import Hermes

/// The end of a client, and the streams that end with it.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct ClientLifetimeTests {
    private static func server() async throws -> FakeHermesServer {
        try await FakeHermesServer.scripted { packet, connection in
            if case .authenticate = packet.body { connection.accept(id: packet.id) }
        }
    }

    @Test func `states, changes and events end when the client has stopped`() async throws {
        let server = try await Self.server()
        let client = try HermesClient(.fake(server))
        let (states, changes, events) = (client.states, client.outbox.changes, client.events)
        _ = try await client.logIn(.token("t"))
        await client.close()
        var last: ConnectionState?
        for await state in states { last = state }
        #expect(last == .stopped(nil))
        for await _ in changes {}
        for await _ in events {}
        // A stream that is requested now reports the next login.
        let again = client.states
        _ = try await client.logIn(.token("t"))
        await client.close()
        var count = 0
        for await _ in again { count += 1 }
        #expect(count > 2)
        try await server.stop()
    }

    @Test func `a client that nobody holds any more logs out and lets its file go`() async throws {
        let server = try await Self.server()
        try await FileLocalStoreTests.withPath { path in
            var states: AsyncStream<ConnectionState>?
            do {
                var configuration = HermesClient.Configuration.fake(server)
                configuration.store = try FileLocalStore(path: path)
                let client = try HermesClient(configuration)
                _ = try await client.logIn(.token("t"))
                states = client.states
            }
            guard let states else {
                Issue.record("no states")
                return
            }
            for await _ in states {}
            // The last reference is released on the client's event loop, a moment after the states have ended.
            var store: FileLocalStore?
            while store == nil {
                store = try? FileLocalStore(path: path)
                await Task.yield()
            }
        }
        try await server.stop()
    }

    private static func driver(
        _ connector: @escaping ConnectionDriver<DelimitedLink>.Connector
    ) -> ConnectionDriver<DelimitedLink> {
        let device = DeviceDescription(id: "d")
        return ConnectionDriver(
            link: DelimitedLink(device: device, cursor: nil, maxFrameBytes: 1000, statisticsInterval: nil),
            eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
            heartbeat: .delimited,
            reconnect: .never,
            conditions: DeviceConditions(),
            logger: nil,
            connector: connector
        )
    }

    @Test func `close returns at once while a connection is being opened, and the login fails`() async throws {
        // If `close` waited for the connection, it would wait forever.
        let promises = Log<EventLoopPromise<any Channel>>()
        let driver = Self.driver { eventLoop, _, _ in
            let promise = eventLoop.makePromise(of: (any Channel).self)
            promises.append(promise)
            return promise.futureResult
        }
        async let login = driver.start(prepare: { $0.logIn(.token("t")) })
        for await state in driver.states() where state == .connecting { break }
        await driver.close(takesLast: true)
        do {
            _ = try await login
            Issue.record("it is logged in")
        } catch let error as HermesClientError {
            #expect(error.code == .closed)
        }
        // A connection that opens late is closed. A late failure has no effect.
        let server = try await Self.server()
        let late = try await ClientBootstrap(group: driver.eventLoop)
            .connect(host: "127.0.0.1", port: server.port).get()
        promises.all.first?.succeed(late)
        try await late.closeFuture.get()
        for await state in driver.states() {
            #expect(state == .stopped(nil))
            break
        }
        try await server.stop()
    }

    @Test func `close and logIn beside each other both return`() async throws {
        let server = try await Self.server()
        let client = try HermesClient(.fake(server))
        for _ in 0..<20 {
            _ = try await client.logIn(.token("t"))
            async let first: Void = client.close()
            async let login = try? client.logIn(.token("t"))
            async let second: Void = client.close()
            _ = await (first, login, second)
        }
        await client.close()
        try await server.stop()
    }

    @Test func `a room that cannot be entered again after a reconnect is told`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room(let request):
                guard case .enter = request.request else { return }
                if connection.number == 1 {
                    var result = Hermes_V1_Result()
                    result.room.memberCount = 1
                    connection.send(.result(result), id: packet.id)
                    if request.room == "b" { connection.close() }
                } else if request.room == "a" {
                    connection.refuse(2003, "not any more", id: packet.id)
                } else {
                    connection.send(.result(Hermes_V1_Result()), id: packet.id)
                }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let user = RoomUser(name: "ann")
        let events = client.ephemeralEvents
        try await client.enterRoom("a", as: user)
        try await client.enterRoom("b", as: user)
        for await event in events {
            guard let room = event.room else { continue }
            #expect(room.room == "a")
            #expect(room.kind == .kicked(reason: "not any more"))
            break
        }
        // The client also does not try to enter the room again.
        #expect(Set(await client.driver.link.rooms.keys) == ["b"])
        await client.close()
        try await server.stop()
    }
}
