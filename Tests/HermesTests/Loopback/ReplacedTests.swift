// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import Hermes
@testable import HermesProtocols

/// Two clients with the same device id. The older client stops with the reason, in every protocol. But a late login of
/// the client itself does not stop it.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct ReplacedTests {
    private static let reconnect = ReconnectPolicy(
        windows: [],
        delays: [.milliseconds(5)],
        jitter: 0,
        maxAdvisedWindow: .zero
    )

    @Test func `over IMPB`() async throws {
        try await withServer { server in
            var configuration = IMPBClient.Configuration(
                server: ServerAddress(port: server.port("impb")),
                device: DeviceDescription(id: "phone")
            )
            configuration.conditions = DeviceConditions()
            configuration.reconnect = Self.reconnect
            let old = try IMPBClient(configuration)
            let login = try await old.logIn(.register(nickName: "ann", password: "secret"))
            let new = try IMPBClient(configuration)
            _ = try await new.logIn(.token(login.token))
            let error = await #expect(throws: HermesClientError.self) { try await old.run() }
            #expect(error?.code == .replaced)
            // The newer client was not affected.
            #expect(try await new.account(id: login.uid).nickName == "ann")
            await new.close()
        }
    }

    @Test func `over QSIOP`() async throws {
        try await withServer { server in
            let registration = try HermesClient(
                HermesClient.Configuration(
                    server: ServerAddress(port: server.port("delimited")),
                    device: DeviceDescription(id: "phone")
                )
            )
            let session = try await registration.logIn(.register(nickName: "ann", password: "secret"))
            var configuration = QSIOPClient.Configuration(
                server: ServerAddress(port: server.port("qsiop")),
                identity: QSIOPClient.Identity(uid: session.uid, token: session.token, device: "meter")
            )
            configuration.conditions = DeviceConditions()
            configuration.reconnect = Self.reconnect
            let old = try QSIOPClient(configuration)
            try await old.connect()
            let new = try QSIOPClient(configuration)
            try await new.connect()
            let error = await #expect(throws: HermesClientError.self) { try await old.run() }
            #expect(error?.code == .replaced)
            _ = try await new.ping()
            await new.close()
            await registration.close()
        }
    }

    @Test func `over MQTT`() async throws {
        try await withServer { server in
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "one"
            )
            configuration.conditions = DeviceConditions()
            configuration.reconnect = Self.reconnect
            let old = try MQTTClient(configuration)
            try await old.connect()
            let new = try MQTTClient(configuration)
            try await new.connect()
            let error = await #expect(throws: HermesClientError.self) { try await old.run() }
            #expect(error?.mqttReason == .sessionTakenOver)
            _ = try await new.subscribe([.init("a")])
            await new.close()
        }
    }

    @Test func `a late login of its own is no reason to stop, the second such end is: IMPB`() async throws {
        let server = try await FakeServer<IMPBFrameDecoder> { frame, connection in
            guard frame.type == .request else { return }
            // The first login is never answered.
            guard connection.number > 1 else { return connection.close() }
            var login = IMPB_login_response()
            login.uid = 7
            login.token = "t"
            var reply = IMPB_CommonRespon()
            reply.isSuc = true
            var kicked = IMPB_kicked_notification()
            kicked.code = HermesClientError.replacedOnServer
            var notification = IMPB_Notification_msg()
            notification.type = .kicked
            var buffer = ByteBuffer()
            do {
                reply.respon = try login.wireBytes()
                notification.body = try kicked.wireBytes()
                try IMPBFrame.write(reply, seq: frame.seq, type: .request, into: &buffer)
                try IMPBFrame.write(notification, seq: 0, type: .notification, into: &buffer)
            } catch {
                Issue.record(error)
            }
            connection.channel.writeAndFlush(buffer, promise: nil)
            connection.close()
        }
        var configuration = IMPBClient.Configuration(
            server: ServerAddress(port: server.port),
            device: DeviceDescription(id: "phone")
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = Self.reconnect
        let client = try IMPBClient(configuration)
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.code == .replaced)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }

    @Test func `a late login of its own is no reason to stop, the second such end is: MQTT`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            if connection.number > 1 {
                connection.accept()
                connection.send(.disconnect(MQTTDisconnect(reason: .sessionTakenOver)))
            }
            connection.close()
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.conditions = DeviceConditions()
        let client = try MQTTClient(configuration)
        try await client.connect()
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.mqttReason == .sessionTakenOver)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }

    @Test func `a login that a late login of its own has overtaken is repeated: MQTT`() async throws {
        let server = try await Self.overtaking(data: nil)
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.conditions = DeviceConditions()
        let client = try MQTTClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.mqttReason == .notAuthorized)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }

    @Test func `a login that a late login of its own has overtaken is repeated: native over MQTT`() async throws {
        var refusal = Hermes_V1_Packet()
        refusal.id = 1
        refusal.result.error.code = HermesClientError.replacedOnServer
        let server = try await Self.overtaking(data: refusal.wireBuffer())
        var configuration = HermesClient.Configuration(
            server: Carrier.mqtt.address(port: server.port),
            device: DeviceDescription(id: "phone")
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = Self.reconnect
        let client = try HermesClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.logIn(.token("t")) }
        #expect(error?.code.rawValue == HermesClientError.replacedOnServer)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }

    /// Creates a server that never answers the first CONNECT, and refuses all others because of a newer one.
    private static func overtaking(data: ByteBuffer?) async throws -> FakeMQTTServer {
        try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            if connection.number > 1 {
                let properties: [MQTTProperty] = data.map { [.authenticationData($0)] } ?? []
                let refusal = MQTTConnack(reason: .notAuthorized, properties: MQTTProperties(properties))
                connection.send(.connack(refusal))
            }
            connection.close()
        }
    }

    @Test func `a late login of its own is no reason to stop, the second such end is: QSIOP`() async throws {
        let server = try await FakeServer<QSIOPFrameDecoder> { frame, connection in
            guard frame.operation == .report else { return }
            if connection.number > 1 {
                connection.send(QSIOPFrame(.response, ["code": "0"]))
                connection.send(QSIOPFrame(.response, ["code": "\(HermesClientError.replacedOnServer)"]))
            }
            connection.close()
        }
        var configuration = QSIOPClient.Configuration(
            server: ServerAddress(port: server.port),
            identity: QSIOPClient.Identity(uid: 7)
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = Self.reconnect
        let client = try QSIOPClient(configuration)
        try await client.connect()
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.code == .replaced)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }

    @Test func `a login that was given up is blamed once, and for five minutes`() {
        var logins = StrayLogins()
        #expect(logins.blame(now: 0) == false)
        logins.began()
        logins.answered()
        logins.connectionLost(now: 0)
        #expect(logins.blame(now: 0) == false)
        for now in [Int64(0), 1000] {
            logins.began()
            logins.connectionLost(now: now)
        }
        #expect(logins.blame(now: 2000) == true)
        #expect(logins.blame(now: 2000) == true)
        #expect(logins.blame(now: 2000) == false)
        logins.began()
        logins.connectionLost(now: 0)
        #expect(logins.blame(now: 300_001) == false)
    }

    @Test func `the next run of the app knows the logins that may be on their way`() {
        var logins = StrayLogins()
        logins.began(now: 1)
        logins.connectionLost(now: 2)
        logins.began(now: 3)
        #expect(logins.unanswered == [2, 3])
        var next = StrayLogins(unanswered: logins.unanswered)
        next.began(now: 4)
        next.answered()
        #expect(next.blame(now: 5) && next.blame(now: 5) && !next.blame(now: 5))
        #expect(next.unanswered.isEmpty)
    }

    @Test func `a login of the app's run before does not stop the client`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            // The first login is never answered. The connection of the second login is replaced once.
            guard connection.number > 1 else { return }
            connection.accept(id: packet.id)
            guard connection.number == 2 else { return }
            connection.send(.kicked(.with { $0.reason = .replaced }))
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let first = try HermesClient(configuration)
        async let login = first.logIn(.token("t"))
        _ = await server.firstPacket { _, packet in if case .authenticate = packet.body { true } else { false } }
        // The copy keeps only the data in the store, as if the app were killed now.
        let next = MemoryLocalStore()
        next.write(
            store.records().map { LocalChange(key: $0.key, value: $0.value) },
            durably: true
        ) { _ in }
        await first.close()
        _ = try? await login

        configuration.localStore = next
        let second = try HermesClient(configuration)
        let session = try await second.logIn(.token("t"))
        #expect(session.uid.rawValue > 0)
        for await state in second.states where state == .live && server.connectionCount > 2 { break }
        #expect(server.connectionCount == 3)
        await second.close()
        try await server.stop()
    }
}
