// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import Hermes
import HermesCore
import HermesPush
import HermesServer
import HermesTestKit
import Testing

/// A whole server with push services and webhooks. The services and the receiver of the webhooks are in this process.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct OutboundTests {
    private static let token = String(repeating: "0a", count: 32)

    /// A folder that is removed with the last reference.
    private final class Folder: Sendable {
        let path = NSTemporaryDirectory() + "/hermes-outbound-" + UUID().uuidString

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ text: String) throws -> String {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
            return path + "/" + name
        }
    }

    private static func configuration(_ server: TestServer, device: String = "one") -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: server.port("delimited")),
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

    private static func register(_ name: String, _ server: TestServer) async throws -> (HermesClient, Session) {
        let client = try HermesClient(configuration(server))
        return (client, try await client.logIn(.register(nickName: name, password: "secret-\(name)")))
    }

    private static func json(_ request: FakeEndpoint.Request) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any] ?? [:]
    }

    @Test
    func `a message to somebody who is away goes to the push service; after a restart it does not go again`()
        async throws
    {
        let folder = try Folder()
        let key = try folder.write("key.p8", P256.Signing.PrivateKey().pemRepresentation)
        let apple = try await FakeEndpoint.start()
        func configure(_ settings: inout ServerSettings) {
            settings.push.handOff = .milliseconds(200)
            settings.push.apns = .init(
                keyFile: key,
                keyID: "KEY1234567",
                teamID: "TEAM123456",
                topic: "org.example.app",
                endpoint: apple.url
            )
        }
        try await withServer(store: .sqlite, configure: configure) { server in
            let (bob, bobSession) = try await Self.register("bob", server)
            try await bob.registerPushToken(PushToken(.apns, Self.token))
            await bob.close()
            let (ann, _) = try await Self.register("ann", server)
            try await ann.send("Are you there?", to: .user(bobSession.uid)).receipt()
            let request = try #require(await apple.requests(1).first)
            #expect(request.path == "/3/device/\(Self.token)")
            let aps = try #require(try Self.json(request)["aps"] as? [String: Any])
            #expect(aps["alert"] as? [String: String] == ["title": "ann", "body": "Are you there?"])
            #expect(aps["badge"] as? Int == 1)
            _ = try folder.write("key.p8", P256.Signing.PrivateKey().pemRepresentation)
            try await server.assembly().reloadPushKeys()
            try await ann.send("Still not?", to: .user(bobSession.uid)).receipt()
            let second = try #require(await apple.requests(2).last)
            #expect(second.headers["authorization"] != request.headers["authorization"], "signed by the new key")
            await ann.close()

            try await server.restart()
            let (carl, _) = try await Self.register("carl", server)
            try await carl.send("And now?", to: .user(bobSession.uid)).receipt()
            let all = await apple.requests(3)
            #expect(all.count == 3)
            #expect((try Self.json(all[2])["aps"] as? [String: Any])?["badge"] as? Int == 3)
            await carl.close()
        }
        await apple.stop()
    }

    @Test
    func `webhooks tell who comes and goes and what is not delivered`() async throws {
        let folder = try Folder()
        let secret = try folder.write("secret", "0123456789abcdef")
        let backEnd = try await FakeEndpoint.start()
        func configure(_ settings: inout ServerSettings) {
            settings.push.handOff = .milliseconds(100)
            settings.webhooks.url = backEnd.url + "/events"
            settings.webhooks.secretFile = secret
        }
        try await withServer(configure: configure) { server in
            let (bob, bobSession) = try await Self.register("bob", server)
            await bob.close()
            let (ann, annSession) = try await Self.register("ann", server)
            try await ann.send("Are you there?", to: .user(bobSession.uid)).receipt()
            let requests = await backEnd.requests(4)
            let events = try requests.map { try Self.json($0) }
            #expect(requests.allSatisfy { $0.headers["hermes-signature"]?.hasPrefix("t=") == true })
            let bobs = events.filter { $0["user"] as? Int == Int(bobSession.uid.rawValue) }.map {
                $0["type"] as? String
            }
            #expect(bobs == ["online", "offline", "message.undelivered"])
            let anns = events.filter { $0["user"] as? Int == Int(annSession.uid.rawValue) }.map {
                $0["type"] as? String
            }
            #expect(anns == ["online"])
            await ann.close()
        }
        await backEnd.stop()
    }

    @Test
    func `the SDK says whether its app is in front of the user, at once and after it connected again`() async throws {
        try await withServer { server in
            let conditions = DeviceConditions()
            conditions.appState = .background
            var configuration = Self.configuration(server)
            configuration.conditions = conditions
            let client = try HermesClient(configuration)
            let session = try await client.logIn(.register(nickName: "bob", password: "secret-bob"))
            let user = try #require(UserID(rawValue: Int32(session.uid.rawValue)))
            let sessions = try server.messenger().devices
            // When the answer arrives, the server has handled all earlier packets.
            _ = try await client.devices()
            #expect(sessions.isOnline(user))
            #expect(sessions.awakeDevices(of: user).isEmpty)
            conditions.appState = .foreground
            while sessions.awakeDevices(of: user).isEmpty { _ = try await client.devices() }
            conditions.appState = .background
            while !sessions.awakeDevices(of: user).isEmpty { _ = try await client.devices() }
            try await server.restart()
            _ = try await client.devices()
            #expect(try server.messenger().devices.awakeDevices(of: user).isEmpty)
            await client.close()
        }
    }

    @Test
    func `a key that cannot be read stops the start with the setting's name`() async throws {
        func configure(_ settings: inout ServerSettings) {
            settings.push.apns = .init(keyFile: "/nowhere/key.p8", keyID: "K", teamID: "T", topic: "a")
        }
        let error = await #expect(throws: ServerFailure.self) {
            try await withServer(configure: configure) { _ in }
        }
        #expect(error?.exitCode == .badConfiguration)
        #expect(error?.message.contains("push.apns.keyFile") == true)
    }

    @Test
    func `settings that belong together are asked for together`() throws {
        for (arguments, missing) in [
            (["--push.apns.keyFile", "k"], "push.apns.topic"),
            (["--push.webPush.privateKeyFile", "k"], "push.webPush.subject"),
        ] {
            let error = #expect(throws: ServerFailure.self) {
                try HermesServer.load(arguments: arguments, environment: [:])
            }
            #expect(error?.message.contains(missing) == true)
        }
    }
}
