// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesProtocols
import HermesTestKit
import Testing

/// The client with a whole server in this process, with each store.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct ChatLoopbackTests {
    /// Returns the texts of the next messages from other accounts.
    private static func texts(_ count: Int, from client: HermesClient) async -> [String] {
        var texts: [String] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            texts.append(message.text ?? "")
            if texts.count == count { break }
        }
        return texts
    }

    private static func configuration(
        _ server: TestServer,
        device: String,
        over carrier: Carrier = .delimited
    ) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: carrier.address(of: server),
            device: DeviceDescription(id: device)
        )
        configuration.reconnect = ReconnectPolicy(
            windows: [],
            delays: [.milliseconds(20)],
            jitter: 0,
            maxAdvisedWindow: .zero
        )
        return configuration
    }

    private static func register(
        _ name: String,
        _ server: TestServer,
        device: String = "one",
        over carrier: Carrier = .delimited
    ) async throws
        -> (HermesClient, Session)
    {
        let client = try HermesClient(configuration(server, device: device, over: carrier))
        return (client, try await client.logIn(.register(nickName: name, password: "secret-\(name)")))
    }

    @Test(arguments: Surroundings.all)
    func `two people talk, both ways`(surroundings: Surroundings) async throws {
        try await withServer(store: surroundings.store) { server in
            let carrier = surroundings.carrier
            let (ann, annSession) = try await Self.register("ann", server, over: carrier)
            let (bob, bobSession) = try await Self.register("bob", server, over: carrier)
            let found = try await ann.account(named: "Bob")
            #expect(found.uid == bobSession.uid)
            #expect(found.isOnline)
            for number in 1...20 { try await ann.send("to bob \(number)", to: .user(bobSession.uid)).receipt() }
            for number in 1...20 { try await bob.send("to ann \(number)", to: .user(annSession.uid)).receipt() }
            #expect(await Self.texts(20, from: bob) == (1...20).map { "to bob \($0)" })
            #expect(await Self.texts(20, from: ann) == (1...20).map { "to ann \($0)" })
            await ann.close()
            await bob.close()
        }
    }

    @Test(arguments: Surroundings.all)
    func `two devices of one account get everything, and what the other one sent`(
        surroundings: Surroundings
    ) async throws {
        try await withServer(store: surroundings.store) { server in
            let carrier = surroundings.carrier
            let (ann, annSession) = try await Self.register("ann", server, over: carrier)
            let second = try HermesClient(Self.configuration(server, device: "two", over: carrier))
            _ = try await second.logIn(.password(nickName: "ann", password: "secret-ann"))
            let (bob, bobSession) = try await Self.register("bob", server, over: carrier)
            try await bob.send("to both", to: .user(annSession.uid)).receipt()
            try await ann.send("from one", to: .user(bobSession.uid)).receipt()
            #expect(await Self.texts(1, from: ann) == ["to both"])
            #expect(await Self.texts(2, from: second) == ["to both", "from one"])
            #expect(try await second.devices().map(\.id).sorted() == ["one", "two"])
            for client in [ann, second, bob] { await client.close() }
        }
    }

    @Test(arguments: Surroundings.all)
    func `who was away gets everything in order, once, and only what is new the next time`(
        surroundings: Surroundings
    ) async throws {
        try await withServer(store: surroundings.store) { server in
            let carrier = surroundings.carrier
            let (ann, annSession) = try await Self.register("ann", server, over: carrier)
            let (bob, _) = try await Self.register("bob", server, over: carrier)
            await ann.close()
            for number in 1...300 { try await bob.send("\(number)", to: .user(annSession.uid)).receipt() }
            let configuration = Self.configuration(server, device: "one", over: carrier)
            try await HermesClient.withClient(configuration, .token(annSession.token)) { client, _ in
                #expect(await Self.texts(300, from: client) == (1...300).map { "\($0)" })
            }
            try await bob.send("new", to: .user(annSession.uid)).receipt()
            try await HermesClient.withClient(configuration, .token(annSession.token)) { client, _ in
                #expect(await Self.texts(1, from: client) == ["new"])
            }
            await bob.close()
        }
    }

    @Test(arguments: Surroundings.all)
    func `a server that restarts loses nobody and nothing, and nothing comes twice`(
        surroundings: Surroundings
    ) async throws {
        try await withServer(store: surroundings.store) { server in
            let carrier = surroundings.carrier
            let (ann, annSession) = try await Self.register("ann", server, over: carrier)
            let (bob, bobSession) = try await Self.register("bob", server, over: carrier)
            try await bob.send("before", to: .user(annSession.uid)).receipt()
            #expect(await Self.texts(1, from: ann) == ["before"])
            // The messages are sent while the server is down or restarting. Each message waits for the new server.
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for number in 1...100 { try await bob.send("\(number)", to: .user(annSession.uid)).receipt() }
                }
                group.addTask {
                    for number in 1...100 { try await ann.send("\(number)", to: .user(bobSession.uid)).receipt() }
                }
                group.addTask { try await server.restart() }
                try await group.waitForAll()
            }
            try await bob.send("after", to: .user(annSession.uid)).receipt()
            try await ann.send("after", to: .user(bobSession.uid)).receipt()
            #expect(await Self.texts(101, from: ann) == (1...100).map { "\($0)" } + ["after"])
            #expect(await Self.texts(101, from: bob) == (1...100).map { "\($0)" } + ["after"])
            await ann.close()
            await bob.close()
        }
    }

    @Test(arguments: Carrier.allCases)
    func `the same device elsewhere ends the older client`(carrier: Carrier) async throws {
        try await withServer { server in
            let (old, session) = try await Self.register("ann", server, over: carrier)
            let new = try HermesClient(Self.configuration(server, device: "one", over: carrier))
            _ = try await new.logIn(.token(session.token))
            let error = await #expect(throws: HermesClientError.self) { try await old.run() }
            #expect(error?.code == .replaced)
            await new.close()
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a room, entered by one over the client's carrier and by one over LiveRoom`(carrier: Carrier) async throws {
        try await withServer { server in
            let (ann, _) = try await Self.register("ann", server, over: carrier)
            let viewer = try LiveRoomClient(
                LiveRoomClient.Configuration(
                    server: ServerAddress(port: server.port("liveroom")),
                    user: RoomUser(name: "vic")
                )
            )
            try await viewer.join()
            let events = viewer.events.makeAsyncIterator()
            #expect(await events.next()?.kind == .joined)
            let annEvents = ann.ephemeralEvents
            try await ann.enterRoom("lobby", as: RoomUser(name: "Ann"))
            #expect(await events.next()?.user?.name == "Ann")
            try await ann.sayInRoom("lobby", "hello")
            #expect(await events.next()?.kind == .text("hello"))
            try await viewer.give("rose", count: 3)
            #expect(await events.next()?.kind == .gift(name: "rose", count: 3, url: nil))
            for await event in annEvents {
                guard case .gift(let name, let count, _) = event.room?.kind else { continue }
                #expect(name == "rose" && count == 3)
                break
            }
            await viewer.leave()
            await ann.close()
        }
    }

    @Test(arguments: [IMPBClient.Acknowledgement.explicit, .implicit])
    func `a message crosses from IMPB to Delimited and QSIOP and back`(
        acknowledgement: IMPBClient.Acknowledgement
    ) async throws {
        try await withServer { server in
            let (ann, annSession) = try await Self.register("ann", server)
            var configuration = IMPBClient.Configuration(
                server: ServerAddress(port: server.port("impb")),
                device: DeviceDescription(id: "phone")
            )
            configuration.acknowledgement = acknowledgement
            let phone = try IMPBClient(configuration)
            let bob = try await phone.logIn(.register(nickName: "bob", password: "secret-bob"))
            let device = try QSIOPClient(
                QSIOPClient.Configuration(
                    server: ServerAddress(port: server.port("qsiop")),
                    identity: QSIOPClient.Identity(uid: annSession.uid, token: annSession.token, device: "meter")
                )
            )
            try await device.connect()
            _ = try await device.ping()
            let receipt = try await phone.send("from the phone", to: annSession.uid)
            #expect(!receipt.messageID.rawValue.isEmpty)
            #expect(await Self.texts(1, from: ann) == ["from the phone"])
            let pushes = device.pushes.makeAsyncIterator()
            #expect(await pushes.next()?.body == "from the phone")
            try await ann.send("to the phone", to: .user(bob.uid)).receipt()
            for await event in phone.events {
                guard case .message(let message) = event else { continue }
                #expect(message.text == "to the phone")
                #expect(message.fromUID == annSession.uid)
                break
            }
            #expect(try await phone.account(id: annSession.uid).nickName == "ann")
            await phone.close()
            await device.close()
            await ann.close()
        }
    }
}
