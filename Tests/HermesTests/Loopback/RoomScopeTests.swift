// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// Stays in rooms that end with their scopes, with a whole server.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct RoomScopeTests {
    private struct Stop: Error {}

    private static func register(_ name: String, _ server: TestServer) async throws -> HermesClient {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: server.port("delimited")),
            device: DeviceDescription(id: name)
        )
        configuration.conditions = DeviceConditions()
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.register(nickName: name, password: "secret"))
        return client
    }

    @Test func `the events of a room come to its scope, and the client leaves with it`() async throws {
        try await withServer { server in
            let ann = try await Self.register("ann", server)
            let bob = try await Self.register("bob", server)
            let bobsEvents = bob.ephemeralEvents.makeAsyncIterator()
            try await bob.enterRoom("lobby", as: RoomUser(name: "Bob"))
            #expect(await bobsEvents.next()?.room?.kind == .joined)
            try await ann.enterRoom("elsewhere", as: RoomUser(name: "Ann"))
            // Ann is already in the room, and stays there.
            try await ann.enterRoom("elsewhere", as: RoomUser(name: "Ann")) { _ in }
            await #expect(throws: Stop.self) {
                try await ann.enterRoom("lobby", as: RoomUser(name: "Ann")) { events in
                    try await ann.sayInRoom("elsewhere", "not here")
                    try await ann.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in
                        try await bob.sayInRoom("lobby", "hello")
                    }
                    // The inner scope has ended, but this scope keeps Ann in the room.
                    try await bob.sayInRoom("lobby", "still there?")
                    var texts: [String] = []
                    for await event in events {
                        #expect(event.room?.room == "lobby")
                        if case .text(let text) = event.room?.kind { texts.append(text) }
                        if texts.count == 2 { break }
                    }
                    #expect(texts == ["hello", "still there?"])
                    throw Stop()
                }
            }
            while let event = await bobsEvents.next() {
                guard event.room?.kind == .left else { continue }
                #expect(event.room?.user?.name == "Ann")
                break
            }
            #expect(Set(await ann.driver.link.rooms.keys) == ["elsewhere"])
            #expect(await ann.driver.link.roomScopes.isEmpty)
            await ann.close()
            await bob.close()
        }
    }

    @Test func `a repetition is not refused because the first try was carried out`() async throws {
        let refused = Log<UInt64>()
        // On the first connection, the server carries out a request, but the connection is lost before the answer.
        let server = try await FakeHermesServer.scripted { packet, connection in
            func refuse(_ code: UInt32) {
                guard refused.all.contains(packet.id) else {
                    refused.append(packet.id)
                    return connection.close()
                }
                connection.refuse(code, "no", id: packet.id)
            }
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room: refuse(2003)
            case .device: refuse(2002)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        try await client.leaveRoom("lobby")
        try await client.removeDevice(id: "phone")
        #expect(refused.all.count == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `a first try is refused as the server says`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room: connection.refuse(2003, "no", id: packet.id)
            case .device: connection.refuse(2002, "no", id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        await #expect { try await client.leaveRoom("lobby") } throws: { ($0 as? HermesClientError)?.code == .forbidden }
        await #expect { try await client.removeDevice(id: "phone") } throws: {
            ($0 as? HermesClientError)?.code == .notFound
        }
        await client.close()
        try await server.stop()
    }

    @Test func `a scope that is cancelled while the client enters leaves no room to enter again`() async throws {
        let entering = Log<(FakeHermesServer.Connection, UInt64)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room(let request):
                if case .enter = request.request { return entering.append((connection, packet.id)) }
                connection.send(.result(Hermes_V1_Result()), id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let scope = Task { try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in } }  // Awaited below.
        while entering.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        scope.cancel()
        _ = await scope.result
        let (connection, id) = try #require(entering.all.first)
        connection.send(.result(Hermes_V1_Result()), id: id)
        connection.event(1, "behind it")
        let events = client.events.makeAsyncIterator()
        _ = await events.next()
        #expect(await client.driver.link.rooms.isEmpty)
        await client.close()
        try await server.stop()
    }

    /// A server that leaves the first requests to enter unanswered, and records all room requests.
    private static func server(
        unanswered: Int,
        _ requests: Log<Hermes_V1_RoomRequest>
    ) async throws -> FakeHermesServer {
        try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let login):
                let isCay = login.password.nickName == "cay"
                connection.accept(id: packet.id, token: isCay ? "token-9" : "token-7", uid: isCay ? 9 : 7)
            case .room(let request):
                guard requests.count(adding: request) > unanswered else { return }
                connection.send(.result(Hermes_V1_Result()), id: packet.id)
            default: break
            }
        }
    }

    private static func waitForScopes(_ count: Int, of client: HermesClient) async throws {
        while await client.driver.link.roomScopes["lobby"]?.logins.count != count {
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    @Test func `a scope that waits for the entry of a cancelled one enters the room itself`() async throws {
        let requests = Log<Hermes_V1_RoomRequest>()
        let server = try await Self.server(unanswered: 1, requests)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let first = Task { try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in } }  // Awaited below.
        while requests.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        let second = Task {  // Awaited below.
            try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in requests.all.count }
        }
        try await Self.waitForScopes(2, of: client)
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        // The requests are the first entry, a leave in case the server carries out the entry, and the entry of the
        // second scope.
        #expect(try await second.value == 3)
        #expect(requests.all[0...2].map { $0.enter.user.name } == ["Ann", "", "Ann"])
        #expect(await client.driver.link.rooms.isEmpty)
        #expect(await client.driver.link.roomScopes.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a scope whose own wait for an entry is cancelled ends, and the entry goes on`() async throws {
        let entering = Log<(FakeHermesServer.Connection, UInt64)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room: entering.append((connection, packet.id))
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        // All are awaited below.
        let first = Task { try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in 1 } }
        while entering.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        let second = Task { try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in 2 } }
        let third = Task { try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in 3 } }
        try await Self.waitForScopes(3, of: client)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        let (connection, id) = try #require(entering.all.first)
        connection.send(.result(Hermes_V1_Result()), id: id)
        #expect(try await first.value == 1)
        #expect(try await third.value == 3)
        #expect(await client.driver.link.roomScopes.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a room that kicked the client is entered again only if the app asks for it`() async throws {
        let entries = Log<Int>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room(let request):
                guard case .enter = request.request else { return }
                entries.append(connection.number)
                connection.send(.result(Hermes_V1_Result()), id: packet.id)
                guard connection.number == 1 else { return }
                var kick = Hermes_V1_Ephemeral()
                kick.room.room = request.room
                kick.room.kicked.reason = "go"
                connection.send(.ephemeral(kick))
            case .ping(let ping):
                var pong = Hermes_V1_Pong()
                pong.clientTimeMs = ping.clientTimeMs
                connection.send(.pong(pong), id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let user = RoomUser(name: "Ann")
        try await client.enterRoom("lobby", as: user) { events in
            for await event in events {
                #expect(event.room?.kind == .kicked(reason: "go"))
                break
            }
            #expect(await client.driver.link.rooms.isEmpty)
            // Another scope enters the room itself.
            try await client.enterRoom("lobby", as: user) { events in
                for await event in events where event.room?.kind == .kicked(reason: "go") { break }
            }
            #expect(entries.all == [1, 1])
            server.closeConnection()
            while server.connectionCount < 2 { try await Task.sleep(for: .milliseconds(2)) }
            // Requests to enter a room again precede the app's.
            _ = try await client.ping()
            #expect(entries.all == [1, 1])
        }
        await client.close()
        try await server.stop()
    }

    @Test func `the end of another account's scope leaves this account's room alone`() async throws {
        let server = try await Self.server(unanswered: 0, Log())
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        let (gate, continuation) = AsyncStream<Void>.makeStream()
        let anns = Task {  // Awaited below.
            try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { _ in for await _ in gate {} }
        }
        while await client.driver.link.rooms.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        _ = try await client.logIn(.password(nickName: "cay", password: "c"))
        #expect(await client.driver.link.roomScopes.isEmpty)
        try await client.enterRoom("lobby", as: RoomUser(name: "Cay")) { _ in
            continuation.finish()
            try await anns.value
            #expect(Set(await client.driver.link.rooms.keys) == ["lobby"])
            #expect(await client.driver.link.roomScopes["lobby"]?.logins.count == 1)
        }
        #expect(await client.driver.link.rooms.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a scope ends with its client, and a cancelled one leaves`() async throws {
        try await withServer { server in
            let ann = try await Self.register("ann", server)
            let entered = Log<Int>()
            let task = Task {  // Cancelled below.
                try await ann.enterRoom("lobby", as: RoomUser(name: "Ann")) { events in
                    for await _ in events { entered.append(1) }
                }
            }
            while entered.all.isEmpty { await Task.yield() }
            task.cancel()
            try await task.value
            #expect(await ann.driver.link.rooms.isEmpty)
            try await ann.enterRoom("lobby", as: RoomUser(name: "Ann")) { events in
                await ann.close()
                for await _ in events {}
            }
        }
    }
}
